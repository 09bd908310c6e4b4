"""Metrics: the kind of a number, and the direction that is better."""

from dataclasses import dataclass
from typing import Literal, get_args

from orthobench.errors import ConfigError

Direction = Literal["higher", "lower", "neither"]
Bounds = tuple[float | None, float | None]
ROUNDING = 1e-3


@dataclass(frozen=True)
class Metric:
    """A metric as a task declares it.

    Attributes:
        name: the key of what `measure` or `summarise` returns.
        unit: unit of its values, in words, such as `share`.
        direction: which of two values is better; `neither` for a quantity that is no score.
        bounds: the least and the greatest value that it can take; None where there is none.
        resolution: the least difference of two values; None for one over the number of test examples.

    Raises:
        ConfigError: the name is no word of metrics.csv, the direction is another word, or the bounds are no two numbers
            in their order.
    """

    name: str
    unit: str
    direction: Direction
    bounds: Bounds = (None, None)
    resolution: float | None = 0.0

    def __post_init__(self) -> None:
        if not self.name.strip() or not self.name.isprintable() or "," in self.name:
            raise ConfigError(f"Metric {self.name!r}: metrics.csv needs a name of one line without a comma: rename it.")
        if self.direction not in get_args(Direction):
            allowed = ", ".join(get_args(Direction))
            raise ConfigError(f"Metric {self.name!r}: direction={self.direction!r} is none of {allowed}: choose one.")
        low, high = self.bounds
        if low is not None and high is not None and not low < high:
            raise ConfigError(f"Metric {self.name!r}: bounds={self.bounds!r} are not (least, greatest): swap them.")

    @property
    def validation(self) -> str:
        """The namesake in validation of a score of the test split: `val/accuracy` of `test/accuracy`."""
        return self.name.replace("test/", "val/", 1)

    def allows(self, value: float) -> bool:
        """Return True if a value is within the bounds, but for rounding."""
        low, high = self.bounds
        return not ((low is not None and value < low - ROUNDING) or (high is not None and value > high + ROUNDING))

    def normalised(self, value: float | None, trivial: float | None) -> float | None:
        """(value - trivial) / (perfect - trivial); None where one is missing, or the metric has no perfect value."""
        perfect = self.bounds[1] if self.direction == "higher" else self.bounds[0]
        if value is None or trivial is None or perfect is None or perfect == trivial:
            return None
        return (value - trivial) / (perfect - trivial)

    def check(self, value: float, task: str) -> None:
        """Check a value that a task measured.

        Args:
            value: the value, in `unit`.
            task: the task's name, for the message.

        Raises:
            ConfigError: it lies beyond the bounds, by more than rounding.
        """
        if not self.allows(value):
            raise ConfigError(
                f"{task}: {self.name} is {value:.6g}, and its declared bounds are {self.bounds!r}"
                ": correct `measure`, or declare wider bounds."
            )


CROSS_ENTROPY = Metric("loss", "nats", "lower", (0.0, None))
SQUARED_ERROR = Metric("loss", "squared units of the target", "lower", (0.0, None))
ACCURACY = Metric("accuracy", "share", "higher", (0.0, 1.0), None)
