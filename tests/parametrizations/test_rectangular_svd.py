import numpy as np
import pytest
import torch

from orthobench.errors import ConfigError
from orthobench.parametrizations.compact_wy import product
from orthobench.parametrizations.rectangular_svd import RectangularSVD

pytestmark = pytest.mark.usefixtures("float64")
SHAPES = [(3, 7), (7, 3), (5, 5), (1, 4), (4, 1)]


@pytest.mark.parametrize(("rows", "columns"), SHAPES)
def test_against_the_dense_product(rows: int, columns: int, rng: np.random.Generator) -> None:
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
def test_parameter_count(rows: int, columns: int, count: int, rng: np.random.Generator) -> None:
    assert RectangularSVD(rows, columns, rng, m1="max", m2="max").parameter_count() == count


@pytest.mark.parametrize(("rows", "columns"), [(2, 4), (4, 2)])
def test_gradcheck(rows: int, columns: int, rng: np.random.Generator, gradcheck) -> None:
    assert gradcheck(RectangularSVD(rows, columns, rng, m1=1, m2=2, r=0.5))


def test_a_residual_branch_starts_at_zero(rng: np.random.Generator) -> None:
    assert not RectangularSVD(4, 6, rng, sigma_star=0.0)().any()


def test_identity_start_needs_a_square(rng: np.random.Generator) -> None:
    with pytest.raises(ConfigError, match="4 x 6"):
        RectangularSVD(4, 6, rng, identity_start=True)
