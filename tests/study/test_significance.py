"""Tests of one model against another."""

import math
from itertools import product
from statistics import mean

import numpy as np
import pytest
from scipy import stats

from orthobench.study.statistics.significance import (
    above_zero,
    between,
    least_of_pairs,
    least_of_samples,
    less_spread,
    needed,
)
from orthobench.study.statistics.statistics import Scores

INF = math.inf


def scores(*values: float | None) -> Scores:
    return Scores(dict(enumerate(values)), len(values))


@pytest.mark.parametrize("values", [[0.3, -0.1, 0.4, 0.2, 0.9], [1.0, 1.0, -1.0, 2.0], [0.0, 0.5, -0.2, 0.1, 0.1, 0.7]])
def test_all_assignments_of_signs(values: list[float]) -> None:
    """By hand: the share of the 2^n sign patterns with a mean of at least ours."""
    flipped = [
        mean(s * v for s, v in zip(signs, values, strict=True)) for signs in product((1, -1), repeat=len(values))
    ]
    expected = mean(found >= mean(values) - 1e-12 for found in flipped)
    assert above_zero(values) == pytest.approx(expected)


def test_ties_decide_nothing_and_equal_differences_no_more_than_their_signs() -> None:
    assert above_zero([0.0] * 6) == 1.0
    assert above_zero([0.1] * 6) == pytest.approx(0.5**6)
    assert above_zero([0.0] * 20) == 1.0
    assert above_zero([0.1] * 20) == pytest.approx(0.5**20)


def test_beyond_twelve_pairs_it_is_students_test_with_a_floor() -> None:
    values = list(np.random.default_rng(0).normal(0.3, 1.0, 15))
    assert above_zero(values) == pytest.approx(stats.ttest_1samp(values, 0.0, alternative="greater").pvalue)
    nearly = [0.011, 0.01, 0.01] * 5
    assert above_zero(nearly) == pytest.approx(0.5**15), "no p-value below that of the signs"
    assert above_zero(nearly, resolution=0.1) == pytest.approx(
        stats.t.sf(mean(nearly) / (0.1 / math.sqrt(12) / math.sqrt(15)), 14)
    )


def test_a_diverged_seed_loses_its_pair() -> None:
    """All for: the least p-value. One against, with the highest rank: 4 wins of ranks 1 to 4 against 5, by hand."""
    assert above_zero([INF, 0.1, 0.2, 0.1, 0.3]) == pytest.approx(0.5**5)
    at_least = sum(
        sum(s * r for s, r in zip(signs, range(1, 6), strict=True)) >= 5 for signs in product((1, -1), repeat=5)
    )
    assert above_zero([-INF, 0.1, 0.2, 0.25, 0.3]) == pytest.approx(at_least / 2**5)
    assert above_zero([-INF] * 5) == 1.0


def test_an_interval_is_two_tests() -> None:
    differences = [0.1, -0.1, 0.2, -0.2, 0.05, 0.0]
    p, against = between(differences, -1.0, 1.0)
    assert p == pytest.approx(0.5**6)
    assert against == 1.0
    assert between([5.0] * 6, -1.0, 1.0) == pytest.approx((1.0, 2 * 0.5**6))
    assert between([5.0] * 6, 0.0, INF) == pytest.approx((0.5**6, 1.0))


def test_where_both_diverged_nothing_is_said() -> None:
    assert between([math.nan] * 6, -1.0, 1.0) == (1.0, 1.0)
    assert between([math.nan] * 6, 0.0, INF) == (1.0, 1.0)


def test_spread() -> None:
    calm, wild = scores(1.0, 1.1, 0.9, 1.05, 0.95, 1.0), scores(0.0, 2.0, 4.0, -3.0, 9.0, 1.0)
    assert less_spread(calm, wild)[0] < 0.01
    assert less_spread(wild, calm)[1] < 0.01
    assert less_spread(calm, calm)[0] > 0.5


def test_a_diverged_seed_is_infinitely_spread() -> None:
    survivors = scores(*[None] * 8, 0.5, 0.5)
    others = scores(*(0.5 + i / 50 for i in range(10)))
    p, against = less_spread(survivors, others)
    assert p > 0.9
    assert against < 0.05
    for n in (3, 10):
        assert less_spread(scores(*[None] * n), scores(*[None] * n)) == (1.0, 1.0)


@pytest.mark.parametrize(("family", "n"), [(1, 5), (2, 6), (3, 6), (10, 8), (0, 5)])
def test_how_many_seeds_it_takes(family: int, n: int) -> None:
    assert needed(family, least_of_pairs) == n
    assert max(family, 1) * 0.5**n <= 0.05 < max(family, 1) * 0.5 ** (n - 1)


def test_the_least_p_value_of_two_samples() -> None:
    assert less_spread(scores(0.0, 0.1, 0.2), scores(0.0, 5.0, 10.0))[0] >= least_of_samples(3) == 1 / 6


def share_below(p_values: list[float]) -> float:
    return sum(p < 0.05 for p in p_values) / len(p_values)


@pytest.mark.parametrize(("n", "power"), [(5, 0.5), (6, 0.75), (8, 0.9)])
def test_an_order_is_seldom_seen_where_there_is_none_and_mostly_where_it_is_large(n: int, power: float) -> None:
    """By theory at most 3.1, 4.7 and 4.7 %; three standard errors of 200 draws are added or taken off."""
    pairs = np.random.default_rng(n).normal(0, math.sqrt(2), (200, n))
    assert share_below([above_zero(list(pair)) for pair in pairs]) <= 0.05 + 0.046
    assert share_below([above_zero(list(pair + 2)) for pair in pairs]) >= power


@pytest.mark.slow
def test_a_spread_is_seldom_seen_where_there_is_none_and_often_where_it_is_a_fifth() -> None:
    draws = np.random.default_rng(0).normal(0, 1, (200, 2, 5))
    assert share_below([less_spread(scores(*a), scores(*b))[0] for a, b in draws]) <= 0.05 + 0.046
    assert share_below([less_spread(scores(*a), scores(*(5 * b)))[0] for a, b in draws[:100]]) >= 0.33
