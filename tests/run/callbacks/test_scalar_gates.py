from pathlib import Path

import pytest
import torch

from orthobench.cells.scalar_gated import ScalarGated
from orthobench.run.callbacks.scalar_gates import ScalarGates
from tests.making import untouched_cell
from tests.run.callbacks.watching import common, finished, names, steps


def watcher(tmp_path: Path, layers: int = 1) -> tuple[ScalarGates, list[ScalarGated]]:
    cells = [untouched_cell(ScalarGated) for _ in range(layers)]
    return ScalarGates(*common(tmp_path), cells), cells  # type: ignore[arg-type]


def clip(cell: ScalarGated, active: bool) -> None:
    torch.nn.init.constant_(cell.beta_raw, 5.0 if active else 0.0)


def test_the_gates_of_a_cell(tmp_path: Path) -> None:
    callback, (cell,) = watcher(tmp_path)
    expected = {"alpha": cell.alpha().item(), "beta": cell.beta().item(), "clipped": 0.0}
    assert callback.measure() == pytest.approx(expected)


def test_the_share_of_clipped_steps_since_the_last_look(tmp_path: Path) -> None:
    callback, (cell,) = watcher(tmp_path)
    for active in (True, False, False, True):
        clip(cell, active)
        callback.count()
    assert callback.measure()["clipped"] == 0.5
    callback.count()
    assert callback.measure()["clipped"] == 1.0


def test_layers_have_columns_of_their_own(tmp_path: Path) -> None:
    callback, cells = watcher(tmp_path, layers=2)
    clip(cells[1], True)
    callback.count()
    found = callback.measure()
    assert (found["clipped/1"], found["clipped/2"]) == (0.0, 1.0)
    assert set(found) == {f"{name}/{layer}" for name in ("alpha", "beta", "clipped") for layer in (1, 2)}


def test_a_resumed_run_goes_on_counting(tmp_path: Path) -> None:
    callback, (cell,) = watcher(tmp_path)
    clip(cell, True)
    callback.count()
    other, _ = watcher(tmp_path)
    other.load_state_dict(callback.state_dict())
    other.count()  # its own cell is not clipped
    assert other.measure()["clipped"] == 0.5


def test_a_run_of_sgornn_records_them() -> None:
    _, curve = finished("model=sgornn")
    assert steps(curve, "alpha") == steps(curve, "beta") == steps(curve, "clipped") == [0, 2, 4, 6]
    alphas, betas = (dict(curve.of(name)) for name in ("alpha", "beta"))
    assert all(betas[step] <= 1 - 2 * alphas[step] + 1e-7 for step in alphas)


def test_a_run_leaves_out_what_it_has_not_or_is_not_asked_for() -> None:
    found = names(finished("model=vprnn")[1])
    assert not {"alpha", "beta", "clipped", "gap/loss", "train_eval/loss", "jacobian", "jacobian/lower"} & found
