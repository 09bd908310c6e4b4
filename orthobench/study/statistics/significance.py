"""Tests of one model against another over few seeds, and how many seeds could decide anything at all.

A seed that diverged is not left out: its difference is infinite, and a test that meets one goes over to signed ranks,
of which it has the highest.
"""

import math
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import numpy as np

from orthobench.study.statistics.statistics import ALPHA, Scores, holm, unrounded

EXACT = 12  # pairs up to which all 2^n assignments of signs are gone through
REARRANGED = 4_000  # the most assignments of seeds to two models that are gone through
Test = tuple[float, float]  # the p-value of what is claimed, and that of the opposite


def above_zero(differences: Sequence[float], resolution: float = 0.0) -> float:
    """The p-value of paired differences lying above zero, against their being symmetric about it.

    Up to EXACT pairs by all assignments of signs; beyond them by Student's test, whose standard deviation is never
    below that of rounding, nor its p-value below 2^-n. Two pairs at least.

    Args:
        differences: of two models with the same seed, infinite where one of them diverged.
        resolution: the least difference of two values.
    """
    from scipy import stats

    values = np.asarray(differences, dtype=float)
    if not np.isfinite(values).all():
        values = np.sign(values) * stats.rankdata([abs(unrounded(value)) for value in values])
    if len(values) <= EXACT:
        found: Any = stats.permutation_test(
            (values,), np.mean, permutation_type="samples", alternative="greater", n_resamples=2**EXACT
        )
        return float(found.pvalue)
    least, centre = 0.5 ** len(values), float(values.mean())
    spread = max(float(values.std(ddof=1)), resolution / math.sqrt(12)) / math.sqrt(len(values))
    if spread == 0:
        return least if centre > 0 else 1.0
    return max(float(stats.t.sf(centre / spread, len(values) - 1)), least)


def between(differences: Sequence[float], low: float, high: float, resolution: float = 0.0) -> Test:
    """Test if paired differences lie between two limits, either of which may be infinite: a one-sided test
    for each.

    With (0, inf) it is that of an order, with (-margin, inf) of non-inferiority, with (-inf, margin) of
    non-superiority, and with (-margin, margin) the two one-sided tests of equality (Schuirmann 1987). A difference that
    is not a number, both models having failed, stands on the limit and supports no side.
    """
    inside, outside = [], []
    for limit, sign in ((low, 1.0), (high, -1.0)):
        if math.isfinite(limit):
            beyond = [0.0 if math.isnan(d) else sign * (d - limit) for d in differences]
            inside.append(above_zero(beyond, resolution))
            outside.append(above_zero([-d for d in beyond], resolution))
    return max(inside), min(holm(outside))


def less_spread(a: Scores, b: Scores) -> Test:
    """Test if the seeds of `a` spread less than those of `b`, a diverged one being infinitely far from the
    others.

    Wilcoxon's rank-sum test of the distances from the median, those of Brown and Forsythe (1974). The least distance of
    each model is left out, because the median forces it to be small (Hines and Hines 2000).
    """
    from scipy import stats

    ours, theirs = _distances(a), _distances(b)
    few = math.comb(len(ours) + len(theirs), len(ours)) <= REARRANGED
    method: Any = stats.PermutationMethod(n_resamples=REARRANGED, batch=1_000) if few else "asymptotic"
    p, against = (
        float(stats.mannwhitneyu(ours, theirs, alternative=side, method=method).pvalue) for side in ("less", "greater")
    )
    return p, against


def _distances(scores: Scores) -> list[float]:
    middle = median(scores.values) if scores.values else 0.0
    return sorted(math.inf if value is None else abs(value - middle) for value in scores.by_seed.values())[1:]


def least_of_pairs(n: int) -> float:
    """The least p-value that n pairs can have."""
    return 0.5**n


def least_of_samples(n: int) -> float:
    """The least p-value that the spread of n seeds of one model against n of another can have."""
    return 1 / math.comb(2 * n - 2, n - 1)


def needed(family: int, least: Callable[[int], float]) -> int:
    """Number of units for which a p-value of 0.05 is possible after Holm's correction over a family of tests."""
    n = 2
    while max(family, 1) * least(n) > ALPHA:
        n += 1
    return n
