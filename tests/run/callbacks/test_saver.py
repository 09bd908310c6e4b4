"""Which validation counts as the best."""

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from orthobench.recording.curve import Curve
from orthobench.run.callbacks.saver import Saver, _better
from orthobench.tasks.metric import ACCURACY, Metric


def results(value: float, loss: float, name: str = "accuracy") -> dict[str, float]:
    return {f"val/{name}": value, "val/loss": loss}


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        ((0.9, 2.0), (0.8, 1.0), True),
        ((0.8, 1.0), (0.9, 2.0), False),
        ((0.9, 0.5), (0.9, 0.6), True),  # equal accuracy
        ((0.9, 0.6), (0.9, 0.6), False),  # the first of equals
        ((0.9, math.nan), (0.9, 0.6), False),
        ((0.1, 9.0), (math.nan, 0.1), True),
        ((math.nan, 0.1), (0.1, 9.0), False),
    ],
)
def test_the_headline_metric_decides_then_the_loss(
    new: tuple[float, float], old: tuple[float, float], expected: bool
) -> None:
    module: Any = SimpleNamespace(task=SimpleNamespace(metric="accuracy", higher_is_better=True))
    assert _better(module)(results(*new), results(*old)) is expected


@pytest.mark.parametrize("old", [{"val/loss": 0.2}, {"val/loss": 0.2, "val/rmse": 0.3}])
def test_a_loss_is_better_when_lower_and_decides_where_an_earlier_version_had_no_headline_metric(
    old: dict[str, float],
) -> None:
    module: Any = SimpleNamespace(task=SimpleNamespace(metric="rmse", higher_is_better=False))
    assert _better(module)({"val/loss": 0.1, "val/rmse": 0.3}, old)
    assert not _better(module)({"val/loss": 0.2, "val/rmse": 0.3}, old)


def test_the_best_test_score_is_by_the_direction_that_the_task_declares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a metric is called."""
    saver = Saver(tmp_path, Curve(tmp_path / "metrics.csv"))
    monkeypatch.setattr(saver, "save", lambda trainer: None)
    declared = (ACCURACY, Metric("error", "share", "lower"), Metric("gain_over_loss", "nats", "higher"))
    task = SimpleNamespace(metric="error", higher_is_better=False, select_on_test=True, declared=lambda: declared)
    trainer: Any = SimpleNamespace(global_step=1, sanity_checking=False, save_checkpoint=lambda path: None)
    for error, accuracy in ((0.3, 0.7), (0.2, 0.8), (0.4, 0.6)):
        scores = {"error": error, "accuracy": accuracy, "gain_over_loss": accuracy}
        results = {f"{split}/{name}": value for split in ("val", "test") for name, value in scores.items()}
        saver.on_validation_end(trainer, SimpleNamespace(task=task, results=results))  # type: ignore[arg-type]
    assert saver.best_test == {"test/error": 0.2, "test/accuracy": 0.8, "test/gain_over_loss": 0.8}
