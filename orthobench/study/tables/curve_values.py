"""Numbers that are read off a run's curve, `NAME@WHEN`, as a published row or a claim asks for them.

STEP, first, last, min, max    one of its values; `first` is after training began
growth, rebound                last minus first; last minus least, which is overfitting where it is a validation loss
rises, sd                      the sum of all increases, 0 for a curve that only falls; the standard deviation
below_LEVEL                    the time to a level: when it got clearly below a number, below `baseline` (the trivial
                               predictor's score) or `tenth` (of that); infinite where it never did
fall                           the steps from clearly below the baseline to clearly below a tenth of it, likewise
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from math import inf, isfinite
from statistics import stdev

LEVELS = {"baseline": 1.0, "tenth": 0.1}  # as shares of the trivial predictor's score
TIME, FALL = "@below_", "@fall"
CLEARLY, KEPT = 0.9, 3
SPREADS = ("growth", "rebound", "rises", "sd")  # in the curve's unit, but of which neither side is the good one

Points = Sequence[Sequence[float]]
VALUES: dict[str, Callable[[list[float]], float]] = {
    "last": lambda values: values[-1],
    "min": min,
    "max": max,
    "growth": lambda values: values[-1] - values[0],
    "rebound": lambda values: values[-1] - min(values),
    "rises": lambda values: sum(max(after - before, 0.0) for before, after in pairwise(values)),
    "sd": lambda values: stdev(values) if len(values) > 1 else 0.0,
}


def is_time(name: str) -> bool:
    """Return True if a name stands for steps that a curve took to get somewhere, which may be infinite."""
    return TIME in name or name.endswith(FALL)


def from_curve(
    names: Iterable[str], points: Mapping[str, Points], baseline: Mapping[str, float]
) -> dict[str, float | None]:
    """The values of the names, by name; None where there is no such curve, point or trivial predictor.

    Args:
        names: those wanted; those without `@` are passed over.
        points: [step, value] of every curve, in the order of the steps.
        baseline: the trivial predictor's scores, by metric.
    """
    found: dict[str, float | None] = {}
    for name in names:
        curve, at, when = name.partition("@")
        if at:
            trivial = baseline.get(curve.rpartition("/")[2])
            found[name] = _value(points.get(curve, ()), when, trivial)
    return found


def _value(points: Points, when: str, trivial: float | None) -> float | None:
    if not points:
        return None
    if is_time(f"@{when}"):
        return _time(points, when, trivial)
    if when in VALUES:
        return VALUES[when]([value for _, value in points])
    return next((value for step, value in points if (step > 0 if when == "first" else step == int(when))), None)


def _time(points: Points, when: str, trivial: float | None) -> float | None:
    names = list(LEVELS) if f"@{when}" == FALL else [when.removeprefix(TIME[1:])]
    levels = [level_of(name, trivial) for name in names]
    times = [time_to_level(points, level) for level in levels if level is not None]
    if len(times) < len(levels):
        return None
    return times[-1] if len(times) == 1 or times[-1] == inf else times[-1] - times[0]


def time_to_level(points: Points, level: float) -> float:
    """The first step of a curve from which it is clearly below a level; infinite where it never is.

    Clearly: the median of three neighbouring validations is below nine tenths of the level, at this validation and
    the two after it. At an end of the curve the outermost value counts twice.

    Args:
        points: [step, value] of the curve, in the order of the steps; a value that is not finite is above any level.
        level: what it is to get below.
    """
    from scipy import ndimage

    values = [value if isfinite(value) else inf for _, value in points]
    smooth = ndimage.median_filter(values, size=3, mode="nearest") if values else []
    below = [value < CLEARLY * level for value in smooth]
    return next((points[i][0] for i in range(len(below) - KEPT + 1) if all(below[i : i + KEPT])), inf)


def level_of(name: str, baseline: float | None) -> float | None:
    """A level by its name, a number or a key of LEVELS; None where there is no trivial predictor."""
    if name not in LEVELS:
        return float(name)
    return None if baseline is None else LEVELS[name] * baseline
