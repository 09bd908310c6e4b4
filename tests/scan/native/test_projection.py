"""The projection in C against torch's product, in float64."""

import pytest
import torch
from torch import Tensor

from orthobench.cells.base import Cell, projection
from orthobench.cells.mingru import MinGRU
from orthobench.cells.mlstm import MLSTM
from orthobench.scan import reference
from orthobench.scan.native import engine
from orthobench.scan.native.library import missing
from orthobench.scan.native.projection import project, source
from tests.making import draw, random_cell, tokens
from tests.scan.native.cases import assert_equal, start

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


@pytest.mark.parametrize(("units", "looked_up"), [(1, True), (3, True), (4, False)])
def test_loops_look_tokens_up_where_their_sums_are_smaller_than_the_projection(units: int, looked_up: bool) -> None:
    cell, x = random_cell(MinGRU), tokens(4, 12, width=5)
    given, U, bias = source(cell, x, Cell, units)
    assert bias is None
    if looked_up:
        assert U is not None
        assert torch.equal(given, x.clamp(max=3))
        given = torch.nn.functional.embedding(given, U.T)
    else:
        assert U is None
    torch.testing.assert_close(given, cell.project(x).transpose(0, 1), rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32])
@pytest.mark.parametrize("cls", [MinGRU, MLSTM])
def test_tokens_of_many_sequences_in_any_order_of_memory(cls: type[Cell], dtype: torch.dtype) -> None:
    cell = random_cell(cls)
    x = tokens(30, 40, width=5).to(dtype).T
    assert_equal(cell, x, start(cell, 40))


def test_no_tokens_are_left_to_the_projection() -> None:
    cell = random_cell(MinGRU)
    given, U, _ = source(cell, torch.zeros(0, 5, dtype=torch.int64), Cell, 0)
    assert (given.shape, U) == ((0, 5, len(cell.U)), None)


@pytest.mark.parametrize("cls", [MinGRU, MLSTM])
def test_a_bias_in_another_type_is_taken_as_that_of_the_matrix(cls: type[Cell]) -> None:
    cell = random_cell(cls).float()
    cell.b = torch.nn.ParameterDict({gate: torch.nn.Parameter(b.double()) for gate, b in cell.b.items()})
    h, _ = engine.run(cell, tokens(4, 20), cell.initial_state(4))
    torch.testing.assert_close(h, reference.run(cell, tokens(4, 20), cell.initial_state(4))[0])


def test_tokens_below_zero_are_left_to_what_refuses_them() -> None:
    with pytest.raises(IndexError):
        source(random_cell(MinGRU), tokens(2, 6) - 3, Cell, 1)


@pytest.mark.parametrize("cls", [MinGRU, MLSTM])
def test_a_projection_of_ones_own_gets_its_gradient(cls: type[Cell]) -> None:
    class Doubled(cls):  # type: ignore[misc, valid-type]
        def project(self, x: Tensor) -> Tensor:
            return 2 * super().project(x)

    cell = random_cell(Doubled)
    for x in (draw(3, 9, 3), tokens(3, 9)):
        found, expected = (
            torch.autograd.grad(run(cell, x, cell.initial_state(3))[0].square().sum(), [*cell.parameters()])
            for run in (engine.run, reference.run)
        )
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other)
