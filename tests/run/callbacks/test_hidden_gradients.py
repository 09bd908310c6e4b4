"""Gradients of hidden states against finite differences, their Jacobians, and scalar gates."""

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import orthobench
from orthobench.cells.elman import Elman
from orthobench.cells.gru import GRU
from orthobench.cells.lstm import LSTM
from orthobench.cells.scalar_gated import ScalarGated
from orthobench.models.recurrent import Recurrent
from orthobench.run.callbacks.hidden_gradients import HiddenGradients, hidden_gradients
from orthobench.run.callbacks.jacobian import chained_jacobian, summary
from orthobench.run.callbacks.scalar_gates import ScalarGates
from tests.making import draw, network, untouched_cell
from tests.run.callbacks.watching import SMALL, common, finished, names, steps

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
    expected = finite_differences(model, *batch(readout), t)
    assert found[t] == pytest.approx(expected, rel=1e-6)  # step^2, and 1e-16 / step
    assert found[t] > 1e-6


def test_the_last_layer_is_measured() -> None:
    model = network(Elman, layers=2, readout="last")
    x, target = batch("last")
    y, _ = model(x)
    expected = (2 / y.numel() * (y - target)) @ model.output_weight  # of the mean squared error, by hand
    found = hidden_gradients(learner(model), [x, target], [T])
    assert found[T] == pytest.approx(expected.norm().item(), rel=1e-12)


def test_steps_beyond_the_sequence_are_left_out_and_what_nothing_depends_on_is_zero() -> None:
    assert list(hidden_gradients(learner(network(Elman)), batch("all"), [2, T, T + 1, 500])) == [2, T]
    assert hidden_gradients(learner(network(Elman)), batch("all"), [T + 1]) == {}
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


SCORES = {"jacobian", "jacobian/min", "jacobian/max", "jacobian/lower", "jacobian/upper"}


def test_a_run_records_it_at_every_validation_when_asked() -> None:
    _, curve = finished("model=urnn_exp", "model.activation=abs", "diagnostics.jacobian=2")
    for name in SCORES:
        assert steps(curve, name) == [0, 3, 6]
        assert all(value == pytest.approx(math.sqrt(8), rel=1e-5) for _, value in curve.of(name))  # float32


def test_norms_lie_between_the_bounds() -> None:
    exp = orthobench.build(*SMALL, "model=sgornn")
    with torch.no_grad():
        found = summary(exp.model, exp.task.batch("val", 0, 0)[0][:4])
    order = [found[name] for name in ("jacobian/lower", "jacobian/min", "jacobian", "jacobian/max", "jacobian/upper")]
    assert order == sorted(order)
    assert 0 < order[0] < order[2] < order[-1]


@pytest.mark.parametrize("model", ["ncgru", "ugru", "lstm"])
def test_gated_cells_have_no_bound(model: str) -> None:
    exp = orthobench.build(*SMALL, f"model={model}")
    with torch.no_grad():
        found = set(summary(exp.model, exp.task.batch("val", 0, 0)[0][:4]))
    assert found == SCORES - {"jacobian/lower", "jacobian/upper"}


def test_in_a_stack_the_last_layer_is_measured_which_reads_what_the_others_give() -> None:
    model, x = network(Elman, layers=2), draw(3, 5, 3)
    with torch.no_grad():
        read = model.layer_inputs(x)[-1]
        expected = torch.linalg.matrix_norm(chained_jacobian(model.cells[1], read))
        assert summary(model, x)["jacobian"] == pytest.approx(expected.mean().item())
        y = orthobench.recurrence(model.cells[1], read)[0] @ model.output_weight.T + model.output_bias
        torch.testing.assert_close(y, model(x)[0], rtol=0, atol=1e-12)


def watcher(tmp_path: Path, layers: int = 1) -> tuple[ScalarGates, list[ScalarGated]]:
    cells = [untouched_cell(ScalarGated) for _ in range(layers)]
    return ScalarGates(*common(tmp_path), cells), cells  # type: ignore[arg-type]


def clip(cell: ScalarGated, active: bool) -> None:
    torch.nn.init.constant_(cell.beta_raw, 5.0 if active else 0.0)


def test_the_gates_of_a_cell_and_the_share_of_clipped_steps_since_the_last_look(tmp_path: Path) -> None:
    callback, (cell,) = watcher(tmp_path)
    expected = {"alpha": cell.alpha().item(), "beta": cell.beta().item(), "clipped": 0.0}
    assert callback.measure() == pytest.approx(expected)
    for active in (True, False, False, True):
        clip(cell, active)
        callback.count()
    assert callback.measure()["clipped"] == 0.5
    callback.count()
    resumed, _ = watcher(tmp_path)
    resumed.load_state_dict(callback.state_dict())
    assert callback.measure()["clipped"] == 1.0
    resumed.count()  # its own cell is not clipped
    assert resumed.measure()["clipped"] == 0.5, "a resumed run goes on counting"


def test_layers_have_columns_of_their_own(tmp_path: Path) -> None:
    callback, cells = watcher(tmp_path, layers=2)
    clip(cells[1], True)
    callback.count()
    found = callback.measure()
    assert (found["clipped/1"], found["clipped/2"]) == (0.0, 1.0)
    assert set(found) == {f"{name}/{layer}" for name in ("alpha", "beta", "clipped") for layer in (1, 2)}


def test_a_run_of_sgornn_records_them() -> None:
    _, curve = finished("model=sgornn")
    assert steps(curve, "alpha") == steps(curve, "beta") == steps(curve, "clipped") == [0, 2, 4, 6]
    alphas, betas = (dict(curve.of(name)) for name in ("alpha", "beta"))
    assert all(betas[step] <= 1 - 2 * alphas[step] + 1e-7 for step in alphas)


def test_a_run_leaves_out_what_it_has_not_or_is_not_asked_for() -> None:
    found = names(finished("model=vprnn")[1])
    assert not {"alpha", "beta", "clipped", "gap/loss", "train_eval/loss", "jacobian", "jacobian/lower"} & found
