"""Several models over many data sets: mean ranks, Friedman's test, Wilcoxon's signed-rank test with Holm's correction,
and the groups of a critical-difference diagram (Demsar 2006; with Wilcoxon's test as Benavoli et al. 2016 advise).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import mean, median
from typing import Any

from orthobench.study.statistics.statistics import ALPHA, holm, unrounded
from orthobench.study.statistics.status import LEVEL

FEWEST = 5  # places of which a correlation is given
EXACT = 10  # data sets up to which all 2^n assignments of signs are gone through


@dataclass(frozen=True)
class Pair:
    """Two models compared over all data sets.

    Attributes:
        wins: data sets on which `first` is the better one, then ties, then losses.
        difference: the median of `first` minus `second`, positive where `first` is the better one.
        p: two-sided p-value, corrected.
    """

    first: str
    second: str
    wins: tuple[int, int, int]
    difference: float
    p: float


@dataclass(frozen=True)
class Ranking:
    """Models by mean rank, 1 being the best.

    Attributes:
        ranks: mean rank by model, best first.
        friedman: p-value of all models being equal; None for fewer than three.
        pairs: every pair, the better ranked first.
        groups: models between whose ranks no pair differs significantly, longest runs only.
        data_sets: how many there are.
    """

    ranks: dict[str, float]
    friedman: float | None
    pairs: list[Pair]
    groups: list[tuple[str, ...]]
    data_sets: int


def rank(scores: dict[str, list[float]], higher: bool = True) -> Ranking:
    """Rank models by their scores on the same data sets; at least two models and two data sets.

    Args:
        scores: a score for each data set, by model.
        higher: whether more is better.
    """
    from scipy import stats

    scores = {name: [value if higher else -value for value in values] for name, values in scores.items()}
    names = list(scores)
    columns = list(zip(*scores.values(), strict=True))
    ranked = [stats.rankdata([-value for value in column]) for column in columns]
    means = {name: float(mean(float(column[i]) for column in ranked)) for i, name in enumerate(names)}
    ranks = dict(sorted(means.items(), key=lambda item: item[1]))
    flat = all(len(set(column)) == 1 for column in columns)
    friedman = float(stats.friedmanchisquare(*scores.values()).pvalue) if len(names) > 2 and not flat else None
    both = list(combinations(ranks, 2))
    p_values = holm([signed_rank(scores[a], scores[b]) for a, b in both])
    pairs = [_pair(a, b, scores, p) for (a, b), p in zip(both, p_values, strict=True)]
    return Ranking(ranks, friedman, pairs, _groups(list(ranks), pairs), len(columns))


def signed_rank(a: list[float], b: list[float], alternative: str = "two-sided") -> float:
    """Wilcoxon's p-value, with the ranks of zero differences split between both signs; 1 where nothing differs.

    Exact for few data sets, by all assignments of signs to the ranks; else the normal approximation. A score may be
    infinite, as that of a model which diverged; two such are equal.
    """
    from scipy import stats

    if a == b:
        return 1.0
    method: Any = stats.PermutationMethod(n_resamples=2**EXACT) if len(a) <= EXACT else "asymptotic"
    found: Any = stats.wilcoxon(_differences(a, b), zero_method="zsplit", alternative=alternative, method=method)
    return float(found.pvalue)


def correlation(one: Sequence[float], other: Sequence[float]) -> tuple[float, tuple[float, float]] | None:
    """Spearman's correlation of two orders, and its 95 % interval; None where one of them tells nothing apart.

    The interval is that of Fisher's transformation with the variance of Bonett and Wright (2000). That of two orders
    that are the same, of which it knows none, reaches from the one of two neighbours that are exchanged.

    Args:
        one: the places of FEWEST things or more in an order; equal things share one.
        other: their places in the other order.
    """
    from scipy import stats

    if len(set(one)) == 1 or len(set(other)) == 1:
        return None
    found: Any = stats.spearmanr(one, other)
    n, value = len(one), round(float(found.statistic), 12)
    most = 1 - 12 / (n * (n**2 - 1))
    within = min(max(value, -most), most)
    half = stats.norm.ppf((1 + LEVEL) / 2) * math.sqrt((1 + within**2 / 2) / (n - 3))
    low, high = math.tanh(math.atanh(within) - half), math.tanh(math.atanh(within) + half)
    return value, (min(low, value), max(high, value))


def _pair(a: str, b: str, scores: dict[str, list[float]], p: float) -> Pair:
    differences = _differences(scores[a], scores[b])
    wins = (sum(d > 0 for d in differences), sum(d == 0 for d in differences), sum(d < 0 for d in differences))
    return Pair(a, b, wins, median(differences), p)


def _differences(a: list[float], b: list[float]) -> list[float]:
    return [0.0 if x == y else unrounded(x - y) for x, y in zip(a, b, strict=True)]


def _groups(names: list[str], pairs: list[Pair]) -> list[tuple[str, ...]]:
    differ = {frozenset((c.first, c.second)) for c in pairs if c.p < ALPHA}
    runs = [
        tuple(names[i:j])
        for i in range(len(names))
        for j in range(i + 2, len(names) + 1)
        if not any(frozenset(pair) in differ for pair in combinations(names[i:j], 2))
    ]
    return [run for run in runs if not any(set(run) < set(other) for other in runs)]
