"""The plain loop and the kernels of torch against torch's own modules, in float64: outputs and every gradient."""

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from orthobench.cells.base import Cell, State
from orthobench.cells.elman import Elman
from orthobench.cells.gru import GRU
from orthobench.cells.lstm import LSTM
from orthobench.parametrizations.scaled_cayley import ScaledCayley
from orthobench.scan import recurrence, reference
from orthobench.scan.fused import engine as fused
from tests.making import draw, random_cell, tokens
from tests.scan.laws import every_law
from tests.scan.native.cases import assert_equal, start

TOLERANCE = {"rtol": 0, "atol": 1e-12}  # a few hundred roundings of numbers near one
CASES = [
    pytest.param(Elman, {"activation": "tanh"}, nn.RNN, {"nonlinearity": "tanh"}, id="rnn_tanh"),
    pytest.param(Elman, {"activation": "relu"}, nn.RNN, {"nonlinearity": "relu"}, id="rnn_relu"),
    pytest.param(GRU, {"reset": "after"}, nn.GRU, {}, id="gru"),
    pytest.param(LSTM, {}, nn.LSTM, {}, id="lstm"),
]


def twin(cell: Cell, cls: type, options: dict[str, Any]) -> nn.RNNBase:
    """torch's module with the weights of `cell`, its second bias zero."""
    module = cls(cell.input_size, cell.hidden_size, batch_first=True, **options).double()
    with torch.no_grad():
        module.weight_ih_l0.copy_(cell.U)
        module.weight_hh_l0.copy_(torch.cat(cell.matrices()))
        module.bias_ih_l0.copy_(torch.cat([cell.b[gate] for gate in cell.gates]))
        module.bias_hh_l0.zero_()
    return module


def own(cell: Cell, x: Tensor, state: State) -> list[Tensor]:
    """Outputs with the final state, and gradients (U, W, b, x, state), by the loop."""
    h_BTN, final = reference.run(cell, x, state)
    loss(h_BTN, final).backward()
    W_grad = torch.cat([cell.recurrent[gate].weight.grad for gate in cell.gates])
    b_grad = torch.cat([cell.b[gate].grad for gate in cell.gates])
    return [h_BTN, *final, cell.U.grad, W_grad, b_grad, x.grad, *(s.grad for s in state)]


def theirs(module: nn.RNNBase, x: Tensor, state: State) -> list[Tensor]:
    """The same by torch."""
    initial = tuple(s[None] for s in state)
    h_BTN, last = module(x, initial if len(state) == 2 else initial[0])
    final = tuple(s[0] for s in (last if len(state) == 2 else (last,)))
    loss(h_BTN, final).backward()
    weights = [module.weight_ih_l0.grad, module.weight_hh_l0.grad, module.bias_ih_l0.grad]
    return [h_BTN, *final, *weights, x.grad, *(s.grad for s in state)]


def loss(h_BTN: Tensor, final: State) -> Tensor:
    return (h_BTN * draw(*h_BTN.shape, seed=8)).sum() + sum((s**2).sum() for s in final)


def leaves(states: int) -> tuple[Tensor, State]:
    return draw(2, 6, 3).requires_grad_(), tuple(draw(2, 4, seed=s).requires_grad_() for s in range(states))


@pytest.mark.parametrize(("cls", "options", "module", "module_options"), CASES)
def test_outputs_and_gradients(
    cls: type, options: dict[str, Any], module: type, module_options: dict[str, Any]
) -> None:
    cell = random_cell(cls, **options)
    found = own(cell, *leaves(cell.states))
    expected = theirs(twin(cell, module, module_options), *leaves(cell.states))
    torch.testing.assert_close(found, expected, **TOLERANCE)


def test_taps_hold_the_hidden_states_of_their_steps_and_matrices_are_made_once() -> None:
    cell, calls = random_cell(Elman), []
    cell.recurrent["h"].register_forward_hook(lambda *_: calls.append(1))
    taps: dict[int, Tensor | None] = dict.fromkeys([1, 4, 6, 9])
    h_BTN, _ = reference.run(cell, draw(2, 6, 3), cell.initial_state(2), taps)
    assert taps.pop(9) is None, "there is no such step"
    assert all(torch.equal(tap, h_BTN[:, t - 1]) for t, tap in taps.items())
    assert len(calls) == 1


def test_taps_belong_to_the_graph() -> None:
    cell = random_cell(Elman)
    taps: dict[int, Tensor] = {2: None}
    _, (final,) = reference.run(cell, draw(2, 3, 3), cell.initial_state(2), taps)
    (found,) = torch.autograd.grad(final.sum(), [taps[2]])
    expected = (1 - final.detach() ** 2) @ cell.matrices()[0].detach()  # tanh' by the chain rule, one step
    torch.testing.assert_close(found, expected, **TOLERANCE)


CAYLEY = {"recurrent": ScaledCayley}
CELLS = [  # beside those of test_engines
    *((cls, {"double_bias": True}) for cls in (Elman, GRU, LSTM)),
    (GRU, {"orthogonal": ["r", "u", "c"], **CAYLEY}),
    (LSTM, CAYLEY),
]
every_cell = pytest.mark.parametrize(("cls", "options"), CELLS)
INPUTS = [
    pytest.param(lambda: draw(3, 7, 3), id="vectors"),
    pytest.param(lambda: tokens(3, 7), id="tokens"),
    pytest.param(lambda: tokens(3, 7, width=6), id="tokens beyond the width"),
    pytest.param(lambda: draw(1, 7, 3), id="batch 1"),
    pytest.param(lambda: draw(3, 1, 3), id="T 1"),
    pytest.param(lambda: draw(1, 1, 3), id="batch 1, T 1"),
]


@pytest.mark.parametrize("make_x", INPUTS)
@every_cell
def test_equals_the_loop(cls: type, options: dict[str, Any], make_x: Any) -> None:
    cell, x = random_cell(cls, **options), make_x()
    assert_equal(cell, x, start(cell, len(x)), fused.run)


@every_law
@every_cell
def test_laws(cls: type, options: dict[str, Any], law: Any) -> None:
    law(partial(recurrence, engine="fused"), random_cell(cls, **options))
