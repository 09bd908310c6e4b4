"""The one rule by which every published number is judged; no table may have another.

With p the published number, u half a unit of its last printed digit, d the margin that a reader of the field would call
no difference, and m, s and w the mean, the standard deviation and the half-width of the 95 % interval of our n seeds:

    not run              no seed is finished
    unstable             a seed diverged or failed; the others' mean is shown and never judged
    partial              fewer seeds than planned, or fewer than three
    reproduced           |m - p| <= d + u and w <= d; or p and m are both no better than the trivial predictor
    agrees, not precise  |m - p| <= d + u but w > d, or p lies inside the 95 % prediction interval
    underspecified       none of these, and the paper leaves out a setting on which the value hangs
    better, not reproduced, differs    by the side on which m lies; `differs` where no side is the good one

The first that holds is the status. A claim that the seeds leave open is `undecided` (claims.py). A parameter count is
no score: `count equal` or `count differs`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean, stdev
from typing import get_args

from orthobench.errors import ConfigError
from orthobench.tasks.metric import Bounds, Direction

REPRODUCED, BETTER, AGREES, UNDECIDED = "reproduced", "better", "agrees, not precise", "undecided"
NOT_REPRODUCED, DIFFERS = "not reproduced", "differs"
PARTIAL, UNSTABLE, UNDERSPECIFIED, NOT_RUN = "partial", "unstable", "underspecified", "not run"
COUNT_EQUAL, COUNT_DIFFERS = "count equal", "count differs"
STATUSES = (
    REPRODUCED, BETTER, AGREES, UNDECIDED, NOT_REPRODUCED, DIFFERS, UNSTABLE, PARTIAL, UNDERSPECIFIED, NOT_RUN,
)  # fmt: skip
COUNTS = (COUNT_EQUAL, COUNT_DIFFERS)
# the upper end of the 95 % interval by degrees of freedom, without scipy's import
STUDENT: dict[float, float] = {
    2: 4.302652729749462, 3: 3.1824463052837078, 4: 2.7764451051977934, 5: 2.5705818356363146, 6: 2.4469118511449786,
    7: 2.364624251592784, 8: 2.306004135204166, 9: 2.262157162798205, 10: 2.228138851986274, 11: 2.200985160091639,
}  # fmt: skip
LEVEL = 0.95
LEAST = 3
ROUNDING = 1e-9  # of binary fractions, relative: 0.97 is exactly 0.005 from 0.965

Interval = tuple[float, float]


@dataclass(frozen=True)
class Verdict:
    """A status, and what it rests on.

    Attributes:
        word: one of `STATUSES` or `COUNTS`.
        mark: what stands in brackets behind it in a table; empty for nothing.
        p: of a claim, the p-value of what it says, where there is one.
        against: of a claim, the p-value of the opposite, where there is one.
        detail: one sentence with the figures; empty where the mark says it all.
        interval: the 95 % prediction interval of one published number; None for fewer than two seeds.
    """

    word: str
    mark: str = ""
    p: float | None = None
    against: float | None = None
    detail: str = ""
    interval: Interval | None = None

    def __str__(self) -> str:
        return f"{self.word} ({self.mark})" if self.mark else self.word


@dataclass(frozen=True)
class _Ours:
    """Mean, standard deviation with its floor, and number of our seeds."""

    m: float
    s: float
    n: int

    @property
    def half_width(self) -> float:
        """Half of the 95 % interval of the mean; infinite for one seed."""
        return student(self.n - 1) * self.s / math.sqrt(self.n) if self.n > 1 else math.inf


def judge(
    ours: Sequence[float | None],
    published: float,
    *,
    margin: float,
    direction: Direction,
    planned: int,
    decimals: int | None = None,
    published_sd: float | None = None,
    published_seeds: int = 1,
    trivial: float | None = None,
    bounds: Bounds = (None, None),
    resolution: float = 0.0,
    unstated: Sequence[str] = (),
) -> Verdict:
    """The status of a published number, all arguments being in its unit.

    Args:
        ours: one number for each finished seed; None for one that diverged or failed.
        published: the number as it is printed.
        margin: the difference that a reader of the field would call none.
        direction: which of two values is better.
        planned: seeds that the table asks for.
        decimals: those that it is printed with, negative for a number rounded to tens; None for an exact one.
        published_sd: its standard deviation over the seeds, where printed.
        published_seeds: runs behind it.
        trivial: the score of the trivial predictor, where there is one.
        bounds: the least and the greatest value of the metric.
        resolution: the least difference of two of its values.
        unstated: settings that the paper leaves out and on which the value hangs.

    Raises:
        ConfigError: a number that is not finite or lies outside the bounds, or a margin or count below zero.
    """
    _check(
        {"published": published, **{f"ours[{i}]": value for i, value in enumerate(ours)}},
        {"margin": margin, "planned": planned, "published_sd": published_sd, "published_seeds": published_seeds,
         "resolution": resolution},
        trivial, bounds,
    )  # fmt: skip
    if direction not in get_args(Direction):
        raise ConfigError(f"direction={direction} is not one of {', '.join(get_args(Direction))}: choose one.")
    finished = [value for value in ours if value is not None]
    interval = prediction_interval(
        finished, published_sd=published_sd, published_seeds=published_seeds, bounds=bounds, resolution=resolution
    )
    early = _unjudged(len(ours), finished, max(planned, LEAST), interval)
    if early is not None:
        return early
    assert interval is not None, "there are three seeds"
    found, unit = _summary(finished, resolution), 0.0 if decimals is None else 0.5 * 10.0**-decimals
    return _judged(found, published, interval, margin, unit, direction, trivial, bounds, unstated)


def _unjudged(ended: int, finished: Sequence[float], wanted: int, interval: Interval | None) -> Verdict | None:
    """The status of a number of which seeds diverged, failed or are missing; None where it can be judged."""
    failed = ended - len(finished)
    if not ended:
        return Verdict(NOT_RUN, detail=f"None of {wanted} seeds is finished.")
    if failed:
        rest = f"; the others' mean is {fmean(finished):.6g}" if finished else ""
        counted = f"{failed} of {ended}"
        return Verdict(UNSTABLE, counted, detail=f"{counted} seeds diverged or failed{rest}.", interval=interval)
    if len(finished) < wanted:
        counted = f"{len(finished)} of {wanted}"
        return Verdict(PARTIAL, counted, detail=f"{counted} seeds are finished.", interval=interval)
    return None


def _judged(
    found: _Ours,
    published: float,
    interval: Interval,
    margin: float,
    unit: float,
    direction: Direction,
    trivial: float | None,
    bounds: Bounds,
    unstated: Sequence[str],
) -> Verdict:
    """The status of a number of which all seeds are finished; `unit` is half a unit of its last printed digit."""
    slack = ROUNDING * max(abs(found.m), abs(published), margin)
    width, gap = found.half_width, abs(found.m - published)
    told = (
        f"The mean of {found.n} seeds is {found.m:.6g} ± {width:.3g}, {gap:.3g} from {published:.10g}; "
        f"the margin is {margin:g}"
    )
    told += f" and the rounding {unit:g}" if unit else ""
    near, precise = gap <= margin + unit + slack, width <= margin + slack
    both = trivial is not None and _both_trivial(found.m, published, trivial, margin + slack, direction)
    if both or (near and precise):
        told += f"; both are no better than the trivial predictor's {trivial:.6g}" if both else ""
        return Verdict(REPRODUCED, "both trivial" if both else "", detail=f"{told}.", interval=interval)
    inside = interval[0] - slack <= published <= interval[1] + slack
    if near or inside:
        told += f"; one published result is expected in {_shown(interval)}"
        nothing = says_nothing(interval, bounds, trivial, direction)
        told += ", more than half of the metric's range, which says nothing" if nothing else ""
        return Verdict(AGREES, detail=f"{told}.", interval=interval)
    if unstated:
        missing = ", ".join(unstated)
        return Verdict(UNDERSPECIFIED, detail=f"{told}; the paper does not state: {missing}.", interval=interval)
    word = BETTER if (found.m > published) == (direction == "higher") else NOT_REPRODUCED
    return Verdict(DIFFERS if direction == "neither" else word, detail=f"{told}.", interval=interval)


def prediction_interval(
    values: Sequence[float],
    *,
    published_sd: float | None = None,
    published_seeds: int = 1,
    bounds: Bounds = (None, None),
    resolution: float = 0.0,
) -> Interval | None:
    """Interval in which one published result lies with 95 %; None for fewer than two values.

    Without a printed standard deviation the published runs are taken to spread as ours do: m -+ t(n - 1) s
    sqrt(1/n + 1/k). With one the two variances of the means add up, and the degrees of freedom are Welch's (1947).
    """
    if len(values) < 2:
        return None
    found, k = _summary(values, resolution), max(published_seeds, 1)
    own, theirs = found.s**2 / found.n, (found.s if published_sd is None else published_sd) ** 2 / k
    freedom = float(found.n - 1)
    if published_sd is not None and k > 1 and own + theirs > 0:
        freedom = (own + theirs) ** 2 / (own**2 / (found.n - 1) + theirs**2 / (k - 1))
    half = student(freedom) * math.sqrt(own + theirs)
    return clipped((found.m - half, found.m + half), bounds)


def clipped(interval: Interval, bounds: Bounds) -> Interval:
    """The part of an interval that lies within the bounds of a metric."""
    (low, high), (least, most) = interval, bounds
    return low if least is None else max(low, least), high if most is None else min(high, most)


def says_nothing(
    interval: Interval, bounds: Bounds, trivial: float | None = None, direction: Direction = "neither"
) -> bool:
    """Return True if an interval is wider than half of the metric's range, from the trivial predictor to the best.

    A range that is open ends at the trivial predictor, too. Where neither side is better it is that of the bounds.
    """
    if bounds == (None, None):
        return False
    low, high = (trivial if end is None else end for end in bounds)
    if trivial is not None and direction != "neither":
        low, high = (trivial, high) if direction == "higher" else (low, trivial)
    if low is None or high is None:
        return False
    return interval[1] - interval[0] > abs(high - low) / 2


def count(ours: int, published: float, rounding: float = 0.0, printed: str | None = None) -> Verdict:
    """The status of a parameter count, which is equal up to how it was rounded; `printed` is how that was written."""
    theirs = printed or f"{'about ' if rounding else ''}{published:,.10g}"
    told = f"The model has {ours:,} parameters, the paper says {theirs}."
    return Verdict(COUNT_EQUAL if abs(ours - published) <= rounding else COUNT_DIFFERS, detail=told)


def _summary(values: Sequence[float], resolution: float) -> _Ours:
    floor = resolution / math.sqrt(12)
    return _Ours(fmean(values), max(stdev(values) if len(values) > 1 else 0.0, floor), len(values))


def _both_trivial(m: float, published: float, trivial: float, margin: float, direction: Direction) -> bool:
    if max(abs(m - trivial), abs(published - trivial)) <= margin:
        return True
    if direction == "neither":
        return False
    worst = max(m, published) if direction == "higher" else min(m, published)
    return worst < trivial if direction == "higher" else worst > trivial


@cache
def student(freedom: float) -> float:
    """The upper end of the 95 % interval of Student's t."""
    if (known := STUDENT.get(freedom)) is not None:
        return known
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + LEVEL) / 2))


def _shown(interval: Interval) -> str:
    return f"[{interval[0]:.6g}, {interval[1]:.6g}]"


def _check(
    judged: dict[str, float | None], sizes: dict[str, float | None], trivial: float | None, bounds: Bounds
) -> None:
    """Refuse what is not finite, a size below zero, and what lies outside the bounds."""
    for name, value in {**judged, **sizes, "trivial": trivial}.items():
        if value is not None and not math.isfinite(value):
            raise ConfigError(f"{name}={value} is not finite; give a number, or None for a seed that diverged.")
    for name, value in sizes.items():
        if value is not None and value < 0:
            raise ConfigError(f"{name}={value} is below zero: it must be >= 0.")
    low, high = (worst if bound is None else bound for bound, worst in zip(bounds, (-math.inf, math.inf), strict=True))
    for name, value in judged.items():
        slack = ROUNDING * abs(value or 0.0)
        if value is not None and not low - slack <= value <= high + slack:
            raise ConfigError(
                f"{name}={value} lies outside the metric's bounds, {low:g} to {high:g}; write it in its unit."
            )
