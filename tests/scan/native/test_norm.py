"""The norm with an output gate, and vectors of length one, in C."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from orthobench.cells import heads
from orthobench.scan.native import norm
from orthobench.scan.native.library import missing
from tests.making import draw

pytestmark = pytest.mark.skipif(missing(torch.float64) is not None, reason="no C compiler here")
WAYS: list[dict[str, Any]] = [{}, {"gate": "silu"}, {"gate": "sigmoid"}, {"gate": "silu", "first": True}]


def results(of: Callable[..., Tensor], *inputs: Tensor, **how: Any) -> tuple[Tensor, ...]:
    """Outputs and gradients by all inputs."""
    inputs = tuple(x.clone().requires_grad_() for x in inputs)
    y = of(*inputs, **how)
    return y.detach(), *torch.autograd.grad(y, inputs, draw(*y.shape, seed=7).to(y.dtype))


@pytest.mark.parametrize("n", [1, 3, 8, 13, 16, 17, 40])
@pytest.mark.parametrize("rows", [1, 7, 16, 35])
@pytest.mark.parametrize("how", WAYS, ids=str)
def test_rows_of_any_length(how: dict[str, Any], rows: int, n: int) -> None:
    """Also those that are fewer than a tile, or end within one."""
    inputs = [3 * draw(2, rows, n), draw(n, seed=2)] + [4 * draw(2, rows, n, seed=3)] * bool(how)
    for found, expected in zip(
        results(norm.gated_norm, *inputs, **how), results(heads.gated_norm, *inputs, **how), strict=True
    ):
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n", [1, 13, 16])
def test_vectors_of_length_one(n: int) -> None:
    """Also where there is none: a vector of zeros stays one."""
    x = draw(2, 9, n)
    x[1, 2] = 0
    for found, expected in zip(results(norm.unit, x), results(heads.unit, x), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("how", WAYS, ids=str)
@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_a_number_that_is_not_finite_spoils_its_row_alone(bad: float, how: dict[str, Any]) -> None:
    x, scale, shown = draw(2, 5, 13), draw(13, seed=2), draw(2, 5, 13, seed=3)
    x[1, 2, 4] = bad
    given = (x, scale, shown) if how else (x, scale)
    found, expected = norm.gated_norm(*given, **how), heads.gated_norm(*given, **how)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12, equal_nan=True)
    assert found.isfinite().all(-1).sum() == 9


@pytest.mark.parametrize(("scale", "shown"), [((12,), None), ((13,), (2, 5, 12)), ((1,), None), ((13,), (1, 5, 13))])
def test_shapes_that_do_not_fit_are_refused(scale: tuple[int, ...], shown: tuple[int, ...] | None) -> None:
    with pytest.raises(ValueError, match="do not fit"):
        norm.gated_norm(draw(2, 5, 13), draw(*scale), None if shown is None else draw(*shown))
