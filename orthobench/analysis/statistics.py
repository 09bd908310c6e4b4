"""Our seeds as numbers: intervals, and tests of one model against another. What they decide is in status.py."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import mean, median, stdev
from typing import Any, Literal

from orthobench.analysis.status import LEVEL, NOT_RUN, PARTIAL, Interval, Verdict

ALPHA = 1 - LEVEL
LEAST = 2

Alternative = Literal["less", "greater"]


@dataclass(frozen=True)
class Scores:
    """One metric of one row, seed by seed.

    Attributes:
        by_seed: its value; null for a seed that diverged.
        planned: how many seeds the table asks for.
    """

    by_seed: Mapping[int, float | None] = field(default_factory=dict)
    planned: int = 1

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
        return mean(self.values) if self.values else None

    def median(self, higher_is_better: bool) -> float | None:
        """Median over all seeds, a diverged one being worse than any number; null where the median is such a seed."""
        if not self.by_seed:
            return None
        worst = -math.inf if higher_is_better else math.inf
        middle = median(worst if value is None else value for value in self.by_seed.values())
        return middle if math.isfinite(middle) else None


def t_interval(values: list[float]) -> Interval | None:
    """The 95 % interval of the mean; null for fewer than three values."""
    return _interval(values, 1 / len(values)) if len(values) >= 3 else None


def _interval(values: list[float], variance_factor: float) -> Interval:
    from scipy import stats

    centre, scale = mean(values), stdev(values) * math.sqrt(variance_factor)
    if scale == 0:
        return centre, centre
    low, high = stats.t.interval(LEVEL, len(values) - 1, loc=centre, scale=scale)
    return float(low), float(high)


def wilson(successes: int, trials: int) -> Interval:
    """Wilson's 95 % interval of a share."""
    from scipy import stats

    interval = stats.binomtest(successes, trials).proportion_ci(LEVEL, method="wilson")
    return float(interval.low), float(interval.high)


def incomplete(scores: Scores) -> Verdict | None:
    """`not run` or `partial` where too little is finished for a verdict."""
    if not scores.done:
        return Verdict(NOT_RUN)
    if scores.done < scores.wanted:
        return Verdict(PARTIAL, f"{scores.done} of {scores.wanted}")
    return None


def paired(a: Scores, b: Scores, alternative: Alternative, shift: float = 0.0, worst: float = math.inf) -> float | None:
    """The p-value of `a - b - shift` being less, or greater, than zero, over the seeds that both have.

    Student's test on the differences; with a diverged seed among them, which counts as `worst`, the sign test.
    Null for fewer than two pairs.
    """
    from scipy import stats

    seeds = sorted(set(a.by_seed) & set(b.by_seed))
    if len(seeds) < LEAST:
        return None
    sides = [[worst if s.by_seed[seed] is None else float(s.by_seed[seed] or 0.0) for seed in seeds] for s in (a, b)]
    if not all(math.isfinite(value) for side in sides for value in side):
        signs = [(x > y + shift) - (x < y + shift) for x, y in zip(*sides, strict=True)]
        decided = sum(sign != 0 for sign in signs)
        return float(stats.binomtest(signs.count(1), decided, alternative=alternative).pvalue) if decided else 1.0
    differences = [x - y - shift for x, y in zip(*sides, strict=True)]
    centre = mean(differences)
    if max(differences) - min(differences) <= 1e-9 * max(map(abs, differences)):
        return 0.0 if centre and (centre > 0) == (alternative == "greater") else 1.0
    found: Any = stats.ttest_1samp(differences, 0.0, alternative=alternative)
    return float(found.pvalue)


def less_spread(a: Scores, b: Scores) -> float | None:
    """The p-value of the variance of `a` being less than that of `b`, by the F test; null for fewer than two values."""
    from scipy import stats

    if min(len(a.values), len(b.values)) < LEAST:
        return None
    below, above = stdev(a.values) ** 2, stdev(b.values) ** 2
    if above == 0:
        return 1.0
    return float(stats.f.cdf(below / above, len(a.values) - 1, len(b.values) - 1))


def holm(p_values: list[float]) -> list[float]:
    """Holm's adjusted p-values of one family, in the order given."""
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted
