"""Scores on which 0 is the trivial predictor and 1 is perfect."""

from typing import NamedTuple, TypeVar

from torch import Tensor

Number = TypeVar("Number", float, Tensor)


class Scale(NamedTuple):
    """What a metric's numbers mean.

    Attributes:
        unit: of the metric; empty for a share.
        direction: `higher` or `lower`, whichever is better.
        bounds: least and greatest value there can be; null for none.
        resolution: the least difference between two values on the test set.
    """

    unit: str
    direction: str
    bounds: tuple[float | None, float | None]
    resolution: float


def scaled(accuracy: Number, chance: float) -> Number:
    """(accuracy - chance) / (1 - chance)."""
    return (accuracy - chance) / (1 - chance)


def scales(chance: float, answers: int) -> dict[str, Scale]:
    """The scales of `loss`, `accuracy` and `score` where a test has so many answers."""
    return {
        "loss": Scale("nats", "lower", (0, None), 0.0),
        "accuracy": Scale("", "higher", (0, 1), 1 / answers),
        "score": Scale("", "higher", (scaled(0.0, chance), 1), 1 / answers / (1 - chance)),
    }
