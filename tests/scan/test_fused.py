"""torch's kernels against the plain loop, in float64: outputs to 1e-12, gradients to 1e-10."""

from typing import Any

import pytest
import torch
from torch import Tensor

from orthobench.cells.base import Cell
from orthobench.cells.elman import Elman
from orthobench.cells.gru import GRU
from orthobench.cells.lstm import LSTM
from orthobench.cells.scalar_gated import ScalarGated
from orthobench.parametrizations.scaled_cayley import ScaledCayley
from orthobench.scan import reference
from orthobench.scan.fused import engine as fused
from tests.making import draw, gradients, random_cell, tokens

CAYLEY = {"recurrent": ScaledCayley}
KNOWN = [
    *((Elman, {"activation": activation}) for activation in ("tanh", "relu", "modrelu", "leaky_relu", "abs")),
    (Elman, {"activation": "modrelu", **CAYLEY}),
    *((GRU, {"reset": reset, "activation": a, **CAYLEY}) for reset in ("after", "before") for a in ("tanh", "modrelu")),
    (GRU, {"orthogonal": ["r", "u", "c"], **CAYLEY}),
    (GRU, {"reset": "none", **CAYLEY}),
    *((cls, {"double_bias": True}) for cls in (Elman, GRU, LSTM)),
    *((ScalarGated, {"activation": a, "bounded": b, **CAYLEY}) for a in ("relu", "modrelu") for b in (True, False)),
    (LSTM, CAYLEY),
]
CELLS = [case for case in KNOWN if fused.why_not(random_cell(case[0], **case[1])) is None]  # grows with the engine
INPUTS = [
    pytest.param(lambda: draw(3, 7, 3), id="vectors"),
    pytest.param(lambda: tokens(3, 7), id="tokens"),
    pytest.param(lambda: tokens(3, 7, width=6), id="tokens beyond the width"),
    pytest.param(lambda: draw(1, 7, 3), id="batch 1"),
    pytest.param(lambda: draw(3, 1, 3), id="T 1"),
    pytest.param(lambda: draw(1, 1, 3), id="batch 1, T 1"),
]


def results(run: Any, cell: Cell, x: Tensor, state: tuple[Tensor, ...]) -> tuple[list[Tensor], list[Tensor | None]]:
    """Outputs and final state; gradients of the parameters, the input and the initial state."""
    cell.zero_grad()
    x = x.clone().requires_grad_(x.is_floating_point())
    state = tuple(s.detach().clone().requires_grad_() for s in state)
    h_BTN, final = run(cell, x, state)
    ((h_BTN * draw(*h_BTN.shape, seed=8)).sum() + sum((s**2).sum() for s in final)).backward()
    return [h_BTN.detach(), *(s.detach() for s in final)], [*gradients(cell), x.grad, *(s.grad for s in state)]


@pytest.mark.parametrize("make_x", INPUTS)
@pytest.mark.parametrize(("cls", "options"), CELLS)
def test_equals_the_loop(cls: type, options: dict[str, Any], make_x: Any) -> None:
    cell, x = random_cell(cls, **options), make_x()
    state = tuple(draw(len(x), 4, seed=s) for s in range(cell.states))
    own, oracle = results(fused.run, cell, x, state), results(reference.run, cell, x, state)
    torch.testing.assert_close(own[0], oracle[0], rtol=0, atol=1e-12)  # the order of sums differs
    torch.testing.assert_close(own[1], oracle[1], rtol=0, atol=1e-10)


@pytest.mark.parametrize(("cls", "options"), CELLS)
def test_trains_the_initial_state(cls: type, options: dict[str, Any]) -> None:
    cell, x = random_cell(cls, trainable_h0=True, **options), draw(3, 7, 3)
    found = []
    for engine in (fused, reference):
        cell.zero_grad()
        engine.run(cell, x, cell.initial_state(3))[0].sum().backward()
        found.append(cell.h0.grad.clone())
    torch.testing.assert_close(*found, rtol=0, atol=1e-10)
    assert found[0].any()


def test_evaluation_gives_the_same_numbers() -> None:
    cell, x = random_cell(LSTM), draw(3, 7, 3)
    training = fused.run(cell, x, cell.initial_state(3))[0]
    cell.eval()
    with torch.inference_mode():
        evaluated = fused.run(cell, x, cell.initial_state(3))[0]
    torch.testing.assert_close(evaluated, training, rtol=0, atol=1e-14)
