"""Our seeds as numbers, their intervals, and Holm's correction. Tests are in significance.py, statuses in status.py."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from statistics import mean, median, stdev
from typing import Literal

from orthobench.study.records.records import Line
from orthobench.study.statistics.status import LEVEL, NOT_RUN, PARTIAL, Interval, Verdict, student

ALPHA = 1 - LEVEL
LEAST = 2
NORMAL = 1.959963984540054  # the upper end of the 95 % interval of the normal distribution


@dataclass(frozen=True)
class Scores:
    """Scores of a row by one metric, seed by seed.

    Attributes:
        by_seed: its value; None for a seed that diverged.
        planned: how many seeds the table asks for.
    """

    by_seed: Mapping[int, float | None] = field(default_factory=dict)
    planned: int = 1

    @classmethod
    def of(cls, lines: Iterable[Line], name: str, planned: int, select: str = "best_val") -> "Scores":
        """A score of runs, whose lines in the records these are."""
        return cls({l.seed: None if l.diverged else l.metric(name, select) for l in lines}, planned)

    @property
    def values(self) -> list[float]:
        """Values of the seeds that did not diverge."""
        return [value for _, value in sorted(self.by_seed.items()) if value is not None]

    @property
    def diverged(self) -> int:
        """Seeds that diverged."""
        return sum(value is None for value in self.by_seed.values())

    @property
    def done(self) -> int:
        """Seeds that are finished, diverged ones among them."""
        return len(self.by_seed)

    @property
    def wanted(self) -> int:
        """Seeds that a verdict needs: those planned, and two at least."""
        return max(self.planned, LEAST)

    @property
    def mean(self) -> float | None:
        """Mean over the seeds that did not diverge."""
        return _mean(*self.values)

    def median(self, higher_is_better: bool) -> float | None:
        """Median over all seeds, a diverged one being infinitely bad; None where no seed is finished."""
        if not self.by_seed:
            return None
        worst = -math.inf if higher_is_better else math.inf
        return median(worst if value is None else value for value in self.by_seed.values())


@lru_cache(maxsize=1 << 16, typed=True)
def _mean(*values: float) -> float | None:
    """The mean of some values, which a table asks for several times; None for none."""
    return mean(values) if values else None


def t_interval(values: list[float], resolution: float = 0.0) -> Interval | None:
    """The 95 % interval of the mean; None for fewer than three values.

    Args:
        values: the values.
        resolution: the least difference of two of them; their standard deviation is not taken below that of rounding.
    """
    return None if len(values) < 3 else _t_interval(resolution, *values)


@lru_cache(maxsize=1 << 16, typed=True)
def _t_interval(resolution: float, *values: float) -> Interval:
    """The interval of three values or more; a table asks for one of them several times."""
    centre = mean(values)
    scale = max(stdev(values), resolution / math.sqrt(12)) / math.sqrt(len(values))
    if scale == 0:
        return centre, centre
    half = student(len(values) - 1) * scale
    return centre - half, centre + half


def share_interval(successes: int, trials: int, method: Literal["wilson", "exact"] = "wilson") -> Interval:
    """The 95 % interval of a share: Wilson's, or the exact one (Clopper & Pearson 1934)."""
    if method == "wilson":
        return _wilson(successes, trials)
    from scipy import stats

    interval = stats.binomtest(successes, trials).proportion_ci(LEVEL, method=method)
    return float(interval.low), float(interval.high)


def _wilson(k: int, n: int) -> Interval:
    """Wilson's interval (1927), as `scipy.stats.binomtest` has it, whose import takes half a second."""
    p, z = k / n, NORMAL
    whole = 2 * (n + z**2)
    centre, delta = (2 * n * p + z**2) / whole, z / whole * math.sqrt(4 * n * p * (1 - p) + z**2)
    return 0.0 if k == 0 else centre - delta, 1.0 if k == n else centre + delta


def in_words(values: Iterable[float | None]) -> str:
    """The mean of the values that are there, with the lowest and the highest of several; empty for none."""
    known = [value for value in values if value is not None]
    span = f" ({min(known):.4g} to {max(known):.4g})" if len(known) > 1 else ""
    return f"{mean(known):.4g}{span}" if known else ""


def incomplete(scores: Scores) -> Verdict | None:
    """`not run` or `partial` where too little is finished for a verdict."""
    if not scores.done:
        return Verdict(NOT_RUN)
    if scores.done < scores.wanted:
        return Verdict(PARTIAL, f"{scores.done} of {scores.wanted}")
    return None


def unrounded(difference: float) -> float:
    """A difference to nine digits, so that those which only rounding tells apart are equal, as 0.9 - 0.8 and 0.1."""
    return float(f"{difference:.9g}")


def holm(p_values: list[float]) -> list[float]:
    """Holm's adjusted p-values of one family, in the order given."""
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted
