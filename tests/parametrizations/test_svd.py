"""Matrices of a band of singular values, square and rectangular."""

import numpy as np
import pytest
import torch

from orthobench.errors import ConfigError
from orthobench.parametrizations.compact_wy import product
from orthobench.parametrizations.rectangular_svd import RectangularSVD
from orthobench.parametrizations.svd import SVD

pytestmark = pytest.mark.usefixtures("float64")


def spread(n: int, rng: np.random.Generator, **options) -> SVD:
    """An SVD whose spectrum is spread over the band."""
    p = SVD(n, rng, **options)
    p.s.data = torch.as_tensor(rng.normal(size=n))
    return p


def factors(p: SVD) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return product(p.U()).detach().numpy(), p.sigma().detach().numpy(), product(p.V()).detach().numpy()


@pytest.mark.parametrize(("m1", "m2"), [(1, 1), (3, 7), (12, 12), (0, 4)])
def test_against_the_dense_product(m1: int, m2: int, rng: np.random.Generator) -> None:
    p = spread(12, rng, m1=m1, m2=m2, r=0.3)
    U, sigma, V = factors(p)
    np.testing.assert_allclose(p().detach(), U @ np.diag(sigma) @ V.T, atol=1e-13)


@pytest.mark.parametrize(("m1", "m2"), [(1, 1), (2, 5), (9, 9)])
def test_low_rank_form(m1: int, m2: int, rng: np.random.Generator) -> None:
    p = spread(9, rng, m1=m1, m2=m2, r=0.2)
    s, P, Q = p.low_rank()
    assert P.shape == Q.shape == (9, m1 + m2)
    torch.testing.assert_close(torch.diag(s) - P @ Q.T, p(), atol=1e-12, rtol=0)


def test_low_rank_form_has_the_same_gradient(rng: np.random.Generator) -> None:
    p, G = spread(8, rng, m1=2, m2=3), torch.as_tensor(rng.normal(size=(8, 8)))
    s, P, Q = p.low_rank()
    through_factors = torch.autograd.grad(((torch.diag(s) - P @ Q.T) * G).sum(), list(p.parameters()))
    through_matrix = torch.autograd.grad((p() * G).sum(), list(p.parameters()))
    torch.testing.assert_close(through_factors, through_matrix, atol=1e-12, rtol=0)


def test_gradcheck(rng: np.random.Generator, gradcheck) -> None:
    assert gradcheck(spread(5, rng, m1=2, m2=3, r=0.5))


def test_default_count_is_a_quarter(rng: np.random.Generator) -> None:
    p = SVD(64, rng)
    assert (p.m1, p.m2) == (16, 16)
    assert SVD.limits(64) == {"m1": 64, "m2": 64}


def test_start_is_orthogonal_and_the_identity_on_a_subspace(rng: np.random.Generator) -> None:
    W = SVD(64, rng, m1=8, m2=8)().detach().numpy()
    np.testing.assert_allclose(W.T @ W, np.eye(64), atol=1e-13)
    assert (np.abs(np.linalg.eigvals(W) - 1) < 1e-8).sum() == 64 - 16


@pytest.mark.parametrize("sigma_star", [1.0, 0.5])
def test_identity_start(sigma_star: float, rng: np.random.Generator) -> None:
    p = SVD(10, rng, sigma_star=sigma_star, identity_start=True)
    torch.testing.assert_close(p(), sigma_star * torch.eye(10), atol=1e-14, rtol=0)
    assert p.U.theta is not p.V.theta


def test_identity_start_needs_equal_counts(rng: np.random.Generator) -> None:
    with pytest.raises(ConfigError, match="identity_start"):
        SVD(10, rng, m1=2, m2=3, identity_start=True)


@pytest.mark.parametrize(("r", "sigma_star"), [(0.01, 1.0), (0.3, 1.0), (0.1, 0.0)])
@pytest.mark.sampled(1)
def test_the_band_holds_whatever_the_steps(r: float, sigma_star: float, rng: np.random.Generator, training) -> None:
    p = SVD(16, rng, r=r, sigma_star=sigma_star)
    training(p, lr=1.0).run(100)
    assert p.contains(p(), 1e-12)
    assert p.s.abs().max() > 3  # some values have reached the edge


def test_membership_is_the_band(rng: np.random.Generator) -> None:
    p = SVD(5, rng, r=0.1)
    assert p.contains(1.1 * torch.eye(5), 1e-12)
    assert not p.contains(1.11 * torch.eye(5), 1e-3)
    assert not p.contains(0.89 * torch.eye(5), 1e-3)


def test_rate_of_the_spectrum(rng: np.random.Generator) -> None:
    p = SVD(5, rng, sigma_lr_scale=50)
    assert p.learning_rate_scales() == {"s": 50}
    assert dict(p.named_parameters()).keys() >= p.learning_rate_scales().keys()


@pytest.mark.slow
def test_float32_parameters(rng: np.random.Generator, training) -> None:
    p = SVD(32, rng).float()
    training(p).run(1000)
    assert p.contains(p(), 1e-6)  # rounding each entry once: 6e-8 sqrt(n)


SHAPES = [(3, 7), (7, 3), (5, 5), (1, 4), (4, 1)]


@pytest.mark.parametrize(("rows", "columns"), SHAPES)
def test_a_rectangle_against_the_dense_product(rows: int, columns: int, rng: np.random.Generator) -> None:
    p = RectangularSVD(rows, columns, rng, m1="max", m2="max", r=0.3)
    p.s.data = torch.as_tensor(rng.normal(size=min(rows, columns)))
    U, V = (product(side()) for side in (p.U, p.V))
    middle = torch.zeros(rows, columns)
    middle.diagonal().copy_(p.sigma().detach())
    torch.testing.assert_close(p(), U @ middle @ V.T, atol=1e-13, rtol=0)


@pytest.mark.parametrize(("rows", "columns"), SHAPES)
def test_singular_values_and_membership(rows: int, columns: int, rng: np.random.Generator) -> None:
    p = RectangularSVD(rows, columns, rng, r=0.2)
    p.s.data = torch.as_tensor(rng.normal(size=min(rows, columns)))
    expected = p.sigma().sort(descending=True).values
    torch.testing.assert_close(torch.linalg.svdvals(p()), expected, atol=1e-13, rtol=0)
    assert p.contains(p(), 1e-12)
    assert not p.contains(2 * p(), 1e-3)


@pytest.mark.parametrize(("rows", "columns", "count"), [(3, 7, 6 + 18 + 3), (7, 3, 18 + 6 + 3), (4, 4, 10 + 10 + 4)])
def test_parameter_count_of_a_rectangle(rows: int, columns: int, count: int, rng: np.random.Generator) -> None:
    assert RectangularSVD(rows, columns, rng, m1="max", m2="max").parameter_count() == count


@pytest.mark.parametrize(("rows", "columns"), [(2, 4), (4, 2)])
def test_gradcheck_of_a_rectangle(rows: int, columns: int, rng: np.random.Generator, gradcheck) -> None:
    assert gradcheck(RectangularSVD(rows, columns, rng, m1=1, m2=2, r=0.5))


def test_a_residual_branch_starts_at_zero(rng: np.random.Generator) -> None:
    assert not RectangularSVD(4, 6, rng, sigma_star=0.0)().any()


def test_identity_start_needs_a_square(rng: np.random.Generator) -> None:
    with pytest.raises(ConfigError, match="4 x 6"):
        RectangularSVD(4, 6, rng, identity_start=True)
