"""What a number measures, and which of two values is the better one."""

from dataclasses import dataclass
from typing import Literal

Direction = Literal["higher", "lower", "neither"]
Bounds = tuple[float | None, float | None]


@dataclass(frozen=True)
class Metric:
    """A metric as a task declares it.

    Attributes:
        name: the key of what `measure` or `summarise` returns.
        unit: of its values.
        direction: which of two values is better; `neither` for a quantity that is no score.
        bounds: the least and the greatest value that it can take; null where there is none.
        resolution: the least difference of two values; null for one over the number of test examples.
    """

    name: str
    unit: str
    direction: Direction
    bounds: Bounds = (None, None)
    resolution: float | None = 0.0


CROSS_ENTROPY = Metric("loss", "nats", "lower", (0.0, None))
SQUARED_ERROR = Metric("loss", "squared units of the target", "lower", (0.0, None))
ACCURACY = Metric("accuracy", "share", "higher", (0.0, 1.0), None)
