"""Skew matrices, matrices between skew and symmetric, and the antisymmetric ones."""

import numpy as np
import pytest
import torch

from orthobench.parametrizations.antisymmetric import Antisymmetric
from orthobench.parametrizations.skew import block_diagonal, sample_cayley_angles, skew, upper_indices
from orthobench.parametrizations.skew_symmetric import SkewSymmetric


@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_skew_is_exact(n: int) -> None:
    A = skew(torch.randn(n * (n - 1) // 2), upper_indices(n), n)
    assert torch.equal(A, -A.T)


def test_upper_triangle_is_row_by_row() -> None:
    A = skew(torch.tensor([1.0, 2.0, 3.0]), upper_indices(3), 3)
    assert A.tolist() == [[0, 1, 2], [-1, 0, 3], [-2, -3, 0]]


@pytest.mark.parametrize(("n", "zero_rows"), [(4, 0), (5, 1)])
def test_blocks(n: int, zero_rows: int) -> None:
    flat = torch.as_tensor(block_diagonal(np.array([0.3, 0.7]), n))
    A = skew(flat, upper_indices(n), n)
    assert A[0, 1] == 0.3
    assert A[2, 3] == 0.7
    assert int((A == 0).all(dim=1).sum()) == zero_rows


def test_angles_of_the_released_seed() -> None:
    angles = sample_cayley_angles(np.random.RandomState(5544), 190)
    np.testing.assert_allclose(angles[:4], [0.13259759, 1.52380802, 0.24997443, 1.24312871], atol=5e-9)
    assert angles.sum() == pytest.approx(70.72553484, abs=5e-9)  # eight decimals are stated


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
def test_gradient_of_the_parts(cls: type) -> None:
    p = cls(5, np.random.default_rng(1)).double()
    (own,) = p.parameters()
    name = next(iter(dict(p.named_parameters())))
    assert torch.autograd.gradcheck(lambda value: torch.func.functional_call(p, {name: value}, ()), (own,))
