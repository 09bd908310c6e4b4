import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

from orthobench.parametrizations.base import Parametrization, deviation
from orthobench.parametrizations.free import Free
from orthobench.recording.curve import Curve
from orthobench.run.callbacks.orthogonality import Orthogonality
from orthobench.tasks.duration import Duration

EYE = torch.eye(3, dtype=torch.float64)


@pytest.fixture
def watcher(tmp_path: Path) -> Orthogonality:
    """Measures every 10 steps into a curve of its own."""
    curve = Curve(tmp_path / "metrics.csv")
    curve.cut(0)
    return Orthogonality(curve, Duration(20, 1, 100, 20), 10)


def trainer(step: int = 0) -> Any:
    return SimpleNamespace(global_step=step, loggers=[])


class Doubled(Free):
    """Twice an orthogonal matrix."""

    constrained: ClassVar[bool] = True

    def contains(self, W: Tensor, tolerance: float) -> bool:
        return float(deviation(W / 2)) <= tolerance


class Plain(Doubled):
    contains = Parametrization.contains


def module(*weights: Tensor, cls: type = Plain) -> Any:
    maps = [cls(3, np.random.default_rng(1)) for _ in weights]
    return SimpleNamespace(model=SimpleNamespace(recurrent_weights=lambda: list(weights), constrained=lambda: maps))


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ([EYE], 0.0),
        ([2 * EYE], 3 * math.sqrt(3)),
        ([EYE.flip(0)], 0.0),
        ([torch.diag(torch.tensor([1.0, 2.0, 3.0]).double())], math.sqrt(9 + 64)),
        ([1j * EYE], 0.0),  # unitary
        ([EYE, 2 * EYE, EYE], 3 * math.sqrt(3)),  # the worst of the layers
    ],
)
def test_is_the_frobenius_norm_of_the_deviation(watcher: Orthogonality, weights: list[Tensor], expected: float) -> None:
    watcher.record(trainer(), module(*weights))
    assert watcher.last == pytest.approx(expected, rel=1e-14)


def test_the_largest_and_the_latest_are_kept(watcher: Orthogonality) -> None:
    for step, scale in enumerate([1.0, 2.0, 1.0]):
        watcher.record(trainer(step), module(scale * EYE))
    assert (watcher.max, watcher.last) == (pytest.approx(3 * math.sqrt(3)), 0.0)


def test_the_first_step_beyond_the_tolerance_is_kept(watcher: Orthogonality) -> None:
    for step, scale in [(0, 1.0), (10, 1.001), (20, 1.01), (30, 2.0)]:
        assert watcher.lost is None or step > 20
        watcher.record(trainer(step), module(EYE, scale * EYE))
    assert watcher.lost == 20


@pytest.mark.parametrize(("scale", "lost"), [(2.0, None), (1.0, 10), (math.nan, 10)])
def test_a_matrix_is_held_against_its_own_set(watcher: Orthogonality, scale: float, lost: int | None) -> None:
    watcher.record(trainer(0), module(2 * EYE, cls=Doubled))
    watcher.record(trainer(10), module(scale * EYE, cls=Doubled))
    assert watcher.lost == lost


def test_every_measurement_is_in_the_curve(watcher: Orthogonality) -> None:
    for step, scale in [(0, 1.0), (10, 2.0)]:
        watcher.record(trainer(step), module(scale * EYE))
    assert watcher.curve.of("orthogonality") == [[0, 0.0], [10, pytest.approx(3 * math.sqrt(3))]]


def test_there_is_nothing_without_a_constraint(watcher: Orthogonality) -> None:
    watcher.record(trainer(), module())
    assert (watcher.max, watcher.last, watcher.curve.rows()) == (None, None, [])


@pytest.mark.parametrize(("step", "rows"), [(1, 0), (9, 0), (10, 1), (15, 0), (20, 1)])
def test_measures_at_the_steps_that_are_due(watcher: Orthogonality, step: int, rows: int) -> None:
    watcher.on_train_batch_end(trainer(step), module(EYE))
    assert len(watcher.curve.rows()) == rows


def test_measures_at_the_start(watcher: Orthogonality) -> None:
    watcher.on_train_start(trainer(), module(EYE))
    assert watcher.curve.of("orthogonality") == [[0, 0.0]]


def test_a_resumed_run_remembers_the_largest(watcher: Orthogonality) -> None:
    watcher.record(trainer(), module(2 * EYE))
    resumed = Orthogonality(watcher.curve, watcher.duration, watcher.every)
    resumed.load_state_dict(watcher.state_dict())
    resumed.record(trainer(1), module(EYE))
    assert (resumed.max, resumed.last) == (watcher.max, 0.0)
