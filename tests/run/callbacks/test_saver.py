"""Which validation counts as the best."""

import math
from types import SimpleNamespace
from typing import Any

import pytest

from orthobench.run.callbacks.saver import _better


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


def test_a_loss_is_better_when_lower() -> None:
    module: Any = SimpleNamespace(task=SimpleNamespace(metric="loss", higher_is_better=False))
    assert _better(module)({"val/loss": 0.1}, {"val/loss": 0.2})
    assert not _better(module)({"val/loss": 0.2}, {"val/loss": 0.2})
