"""Scores on which 0 is the trivial predictor and 1 is perfect."""

from typing import TypeVar

from torch import Tensor

from orthobench.tasks.metric import Metric

Number = TypeVar("Number", float, Tensor)
SCORE = Metric("score", "scaled accuracy", "higher", (None, 1.0), None)
LAST_SCORE = Metric("last_score", "scaled accuracy", "higher", (None, 1.0), None)
EMITTED = Metric("emitted", "share", "lower", (0.0, 1.0), None)


def scaled(accuracy: Number, chance: float) -> Number:
    """(accuracy - chance) / (1 - chance)."""
    return (accuracy - chance) / (1 - chance)
