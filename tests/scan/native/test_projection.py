"""The projection in C against torch's product, in float64."""

import pytest
import torch
from torch import Tensor

from orthobench.cells.base import projection
from orthobench.scan.native.library import missing
from orthobench.scan.native.projection import project
from tests.making import draw

pytestmark = pytest.mark.skipif(missing(torch.float64) is not None, reason="no C compiler here")
SHAPES = [(1, 1, 1, 1), (3, 5, 2, 7), (2, 150, 10, 33), (4, 30, 129, 64), (3, 4, 300, 16)]


def results(product: object, x: Tensor, U: Tensor, bias: Tensor | None) -> list[Tensor]:
    """The projection and the gradients of all that it is made of."""
    inputs = [tensor.clone().requires_grad_() for tensor in (x, U, bias) if tensor is not None]
    p = product(*inputs, *([None] if bias is None else []))  # type: ignore[operator]
    return [p.detach(), *torch.autograd.grad(p, inputs, draw(*p.shape, seed=9))]


@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_equals_torch(shape: tuple[int, int, int, int], has_bias: bool) -> None:
    B, T, I, M = shape
    given = draw(B, T, I), draw(M, I, seed=2), draw(M, seed=3) if has_bias else None
    for found, expected in zip(results(project, *given), results(projection, *given), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def test_bits_do_not_depend_on_threads() -> None:
    x, U, before = draw(5, 40, 10), draw(33, 10, seed=2), torch.get_num_threads()
    try:
        one, two = [torch.set_num_threads(count) or project(x, U, None) for count in (1, 2)]
    finally:
        torch.set_num_threads(before)
    assert torch.equal(one, two)
