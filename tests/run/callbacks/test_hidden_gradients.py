"""||dL/dh_t||_F against finite differences through the steps that follow t."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from orthobench.cells.elman import Elman
from orthobench.cells.gru import GRU
from orthobench.cells.lstm import LSTM
from orthobench.models.recurrent import Recurrent
from orthobench.run.callbacks.hidden_gradients import HiddenGradients, hidden_gradients
from tests.making import draw, network

T = 6
CELLS = [
    pytest.param(Elman, {"activation": "modrelu"}, id="modrelu"),
    pytest.param(GRU, {}, id="gru"),
    pytest.param(LSTM, {}, id="lstm"),
]
READOUTS = ["last", "all"]


def learner(model: Recurrent) -> Any:
    return SimpleNamespace(model=model, task=SimpleNamespace(loss=lambda y, target: F.mse_loss(y, target)))


def batch(readout: str) -> list[Tensor]:
    return [draw(2, T, 3), draw(2, 2, seed=5) if readout == "last" else draw(2, T, 2, seed=5)]


def loss_from(model: Recurrent, x: Tensor, target: Tensor, t: int, h: Tensor) -> float:
    """The loss when the hidden state of step t (from 1) is replaced by h; anything else of the state stays."""
    (cell,), W = model.cells, model.cells[0].matrices()
    state, outputs = cell.initial_state(len(x)), []
    for step, p_t in enumerate(cell.project(x), start=1):
        state = cell.step(p_t, state, W)
        if step == t:
            state = (h, *state[1:])
        outputs.append(F.linear(state[0], model.output_weight, model.output_bias))
    y = outputs[-1] if model.readout == "last" else torch.stack(outputs, dim=1)
    return float(F.mse_loss(y, target))


@torch.no_grad()
def finite_differences(model: Recurrent, x: Tensor, target: Tensor, t: int) -> float:
    taps: dict[int, Any] = {t: None}
    model(x, taps=taps)
    h, step = taps[t].detach(), 1e-5
    slopes = []
    for index in np.ndindex(*h.shape):
        shift = torch.zeros_like(h)
        shift[index] = step
        up, down = (loss_from(model, x, target, t, h + sign * shift) for sign in (1, -1))
        slopes.append((up - down) / (2 * step))
    return float(np.linalg.norm(slopes))


@pytest.mark.parametrize("t", [1, 3, T])
@pytest.mark.parametrize("readout", READOUTS)
@pytest.mark.parametrize(("cls", "options"), CELLS)
def test_equals_finite_differences(cls: type, options: dict[str, str], readout: str, t: int) -> None:
    model = network(cls, readout=readout, cell=options)
    found = hidden_gradients(learner(model), batch(readout), [t])
    assert found[t] == pytest.approx(
        finite_differences(model, *batch(readout), t), rel=1e-6
    )  # step^2, and 1e-16 / step
    assert found[t] > 1e-6


def test_the_last_layer_is_measured() -> None:
    model = network(Elman, layers=2, readout="last")
    x, target = batch("last")
    y, _ = model(x)
    expected = (2 / y.numel() * (y - target)) @ model.output_weight  # of the mean squared error, by hand
    found = hidden_gradients(learner(model), [x, target], [T])
    assert found[T] == pytest.approx(expected.norm().item(), rel=1e-12)


def test_steps_beyond_the_sequence_are_left_out() -> None:
    assert list(hidden_gradients(learner(network(Elman)), batch("all"), [2, T, T + 1, 500])) == [2, T]
    assert hidden_gradients(learner(network(Elman)), batch("all"), [T + 1]) == {}


def test_a_state_that_nothing_depends_on_has_gradient_zero() -> None:
    model = network(Elman, readout="last")
    torch.nn.init.zeros_(model.cells[0].recurrent["h"].weight)
    assert hidden_gradients(learner(model), batch("last"), [1])[1] == 0.0


def test_dropout_is_off() -> None:
    plain, dropped = (network(GRU, layers=2, dropout=share) for share in (0.0, 0.5))
    expected = hidden_gradients(learner(plain), batch("all"), [3])
    assert hidden_gradients(learner(dropped), batch("all"), [3]) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("training", [True, False])
def test_mode_random_state_and_gradients_stay(training: bool) -> None:
    model, before = network(GRU, dropout=0.5).train(training), torch.get_rng_state()
    hidden_gradients(learner(model), batch("all"), [3])
    assert {module.training for module in model.modules()} == {training}
    assert torch.equal(torch.get_rng_state(), before)
    assert all(p.grad is None for p in model.parameters())


def test_is_written_under_the_name_of_its_step() -> None:
    module, rows = learner(network(Elman)), []
    module.task.batch = lambda *position: batch("all") if position == ("val", 0, 0) else pytest.fail("another batch")
    module.device = torch.device("cpu")
    callback = HiddenGradients(None, None, 1, [2, 5])
    callback.write = lambda trainer, values: rows.append(values)
    with torch.inference_mode():  # as within Lightning's validation
        callback.record(SimpleNamespace(), module)
    expected = hidden_gradients(module, batch("all"), [2, 5])
    assert rows == [{f"hidden_gradient/{t}": norm for t, norm in expected.items()}]
