"""Matrices between skew and symmetric, and the antisymmetric ones: the parts, the shift, the spectrum, the start."""

import numpy as np
import pytest
import torch

from orthobench.parametrizations.antisymmetric import Antisymmetric
from orthobench.parametrizations.skew_symmetric import SkewSymmetric

N = 9


@pytest.mark.parametrize("beta", [0.0, 0.3, 0.75, 1.0])
def test_the_two_parts(beta: float) -> None:
    p = SkewSymmetric(N, np.random.default_rng(1), beta=beta, gamma=0.2).double()
    W, M = p().detach() + 0.2 * torch.eye(N), p.M.detach()
    torch.testing.assert_close((W - W.T) / 2, beta * (M - M.T))
    torch.testing.assert_close((W + W.T) / 2, (1 - beta) * (M + M.T))
    assert p.parameter_count() == N**2


def test_the_start_of_the_free_matrix() -> None:
    M = SkewSymmetric(200, np.random.default_rng(1), sigma=3.0).M.detach()
    assert float(M.std()) == pytest.approx(3 / 200, rel=0.02)


def test_antisymmetric_eigenvalues_lie_on_a_line() -> None:
    p = Antisymmetric(N, np.random.default_rng(1), gamma=0.25).double()
    values = torch.linalg.eigvals(p().detach())
    torch.testing.assert_close(values.real, torch.full((N,), -0.25).double(), rtol=0, atol=1e-12)
    assert p.parameter_count() == N * (N - 1) // 2
    assert p.contains(p(), 1e-12)
    assert not p.contains(p() + 0.01, 1e-12)


@pytest.mark.parametrize("cls", [SkewSymmetric, Antisymmetric])
def test_gradient(cls: type) -> None:
    p = cls(5, np.random.default_rng(1)).double()
    (own,) = p.parameters()
    name = next(iter(dict(p.named_parameters())))
    assert torch.autograd.gradcheck(lambda value: torch.func.functional_call(p, {name: value}, ()), (own,))
