"""The real Schur form: its spectrum, its count, its gradient, and the orthogonal matrices that it starts from."""

import numpy as np
import pytest
import torch

import orthobench
from orthobench.errors import ConfigError
from orthobench.parametrizations.base import deviation
from orthobench.parametrizations.schur import Schur

N = 8


def random_form() -> Schur:
    rng = np.random.default_rng(3)
    p = Schur(N, rng, upper_bound=1.0).double()
    with torch.no_grad():
        for own in p.parameters():
            own.copy_(torch.from_numpy(rng.normal(size=own.shape)))
    return p


def test_the_eigenvalues_are_those_of_the_blocks() -> None:
    p = random_form()
    expected = (p.gains * torch.exp(1j * p.angles)).detach()
    expected = torch.cat([expected, expected.conj()])
    found = torch.linalg.eigvals(p().detach())
    assert float((found[:, None] - expected).abs().min(dim=1).values.max()) < 1e-9
    assert float((found[:, None] - expected).abs().min(dim=0).values.max()) < 1e-9


def test_it_is_not_normal_where_the_upper_part_is_not_zero() -> None:
    p = random_form()
    W = p().detach()
    assert float((W @ W.T - W.T @ W).norm()) > 0.1
    with torch.no_grad():
        p.T.zero_()
    W = p().detach()
    torch.testing.assert_close(W @ W.T, W.T @ W, rtol=0, atol=1e-12)


@pytest.mark.parametrize("init", ["cayley", "henaff", "uniform"])
def test_it_starts_orthogonal(init: str) -> None:
    assert deviation(Schur(N, np.random.default_rng(1), init=init).double()()) < 1e-6  # drawn in float32


@pytest.mark.parametrize("n", [2, 4, 20])
def test_size(n: int) -> None:
    count = Schur(n, np.random.default_rng(1)).parameter_count()
    assert count == n * (n - 1) // 2 + n * (n - 2) // 2 + n


def test_gradient() -> None:
    p = random_form()
    own = dict(p.named_parameters())

    def form(*values: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(p, dict(zip(own, values, strict=True)), ())

    assert torch.autograd.gradcheck(form, tuple(own.values()))


def test_any_cell_can_have_it() -> None:
    exp = orthobench.build("model=gru", "model.recurrent=schur", "model.hidden_size=6", "T=9")
    assert [type(W).__name__ for W in exp.model.constrained()] == ["Schur"]


def test_an_odd_size_is_refused() -> None:
    with pytest.raises(ConfigError, match="pairs of units, use 6 or 8"):
        orthobench.build("model=nnrnn", "model.hidden_size=7")
