"""Statistics: intervals, bootstraps, ranks, tests of one model against another, and the horizon."""

import math
import statistics
from itertools import product
from statistics import mean

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtri, stdtrit

from orthobench.study.catalogue import SHIPPED
from orthobench.study.statistics import bootstrap
from orthobench.study.statistics.bootstrap import improvement, interquartile_mean
from orthobench.study.statistics.horizon import holes, horizon, lower_bound
from orthobench.study.statistics.ranks import rank, signed_rank
from orthobench.study.statistics.significance import (
    above_zero,
    between,
    least_of_pairs,
    least_of_samples,
    less_spread,
    needed,
)
from orthobench.study.statistics.statistics import NORMAL, Scores, holm, share_interval, t_interval
from orthobench.study.statistics.status import STUDENT


def scores(*values: float | None) -> Scores:
    return Scores(dict(enumerate(values)), len(values))


def test_the_ends_that_are_kept_are_those_of_scipy() -> None:
    assert {freedom: float(stdtrit(freedom, 0.975)) for freedom in STUDENT} == pytest.approx(STUDENT, rel=1e-12)
    assert float(ndtri(0.975)) == pytest.approx(NORMAL, rel=1e-12)


def test_an_interval_of_numbers_is_not_that_of_equal_numbers_of_another_type() -> None:
    assert [type(end) for end in t_interval([1.0, 1.0, 1.0]) or ()] == [float, float]
    assert [type(end) for end in t_interval([1, 1, 1]) or ()] == [int, int]
    assert t_interval([1.0, 2.0]) is None, "two values have none"


def test_a_diverged_seed_is_the_worst_of_the_median() -> None:
    assert scores(0.1, 0.2, None).median(higher_is_better=False) == 0.2
    assert scores(0.1, 0.2, None).median(higher_is_better=True) == 0.1
    assert scores(0.1, None, None).median(higher_is_better=False) == math.inf
    assert scores().median(higher_is_better=True) is None


def test_holm() -> None:
    """Holm 1979: sorted p-values times the number of hypotheses left, never decreasing."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_intervals_are_those_of_scipy() -> None:
    """They are computed without the import of scipy.stats, bit by bit."""
    for count in range(3, 40):
        values = [float(value**2 % 7) for value in range(count)]
        low, high = stats.t.interval(0.95, count - 1)
        scale = statistics.stdev(values) / math.sqrt(count)
        centre = statistics.mean(values)
        assert t_interval(values) == (float(low) * scale + centre, float(high) * scale + centre)
        for successes in range(count + 1):
            found = stats.binomtest(successes, count).proportion_ci(0.95, method="wilson")
            assert share_interval(successes, count) == (float(found.low), float(found.high))


INF = math.inf


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


def test_differences_that_only_rounding_tells_apart_are_tied() -> None:
    scores = [9.0, 8.0, 7.0, 6.0, 1.0], [8.0, 7.0, 6.0, 5.0, 2.0]
    tenths = [[value / 10 for value in one] for one in scores]
    assert signed_rank(*tenths, "greater") == signed_rank(*scores, "greater") == pytest.approx(6 / 32)
    differences = [a - b for a, b in zip(*tenths, strict=True)]
    assert above_zero([*differences, INF]) == above_zero([1.0, 1.0, 1.0, 1.0, -1.0, INF])


def test_an_interval_is_two_tests() -> None:
    differences = [0.1, -0.1, 0.2, -0.2, 0.05, 0.0]
    assert between(differences, -1.0, 1.0) == pytest.approx((0.5**6, 1.0))
    assert between([5.0] * 6, -1.0, 1.0) == pytest.approx((1.0, 2 * 0.5**6))
    assert between([5.0] * 6, 0.0, INF) == pytest.approx((0.5**6, 1.0))
    assert between([math.nan] * 6, -1.0, 1.0) == between([math.nan] * 6, 0.0, INF) == (1.0, 1.0), "both diverged"


def test_spread_of_which_a_diverged_seed_has_infinitely_much() -> None:
    calm, wild = scores(1.0, 1.1, 0.9, 1.05, 0.95, 1.0), scores(0.0, 2.0, 4.0, -3.0, 9.0, 1.0)
    assert less_spread(calm, wild)[0] < 0.01
    assert less_spread(wild, calm)[1] < 0.01
    assert less_spread(calm, calm)[0] > 0.5
    p, against = less_spread(scores(*[None] * 8, 0.5, 0.5), scores(*(0.5 + i / 50 for i in range(10))))
    assert p > 0.9
    assert against < 0.05
    for n in (3, 10):
        assert less_spread(scores(*[None] * n), scores(*[None] * n)) == (1.0, 1.0)
    assert less_spread(scores(0.0, 0.1, 0.2), scores(0.0, 5.0, 10.0))[0] >= least_of_samples(3) == 1 / 6


@pytest.mark.parametrize(("family", "n"), [(1, 5), (2, 6), (3, 6), (10, 8), (0, 5)])
def test_how_many_seeds_it_takes(family: int, n: int) -> None:
    assert needed(family, least_of_pairs) == n
    assert max(family, 1) * 0.5**n <= 0.05 < max(family, 1) * 0.5 ** (n - 1)


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


def published() -> dict[str, list[float]]:
    """The 84 accuracies of Spectral-RNN's Table 4."""
    found: dict[str, list[float]] = {}
    for row in SHIPPED.published("spectral_rnn"):
        if row.table == "table4" and row.kind == "result":
            found.setdefault(row.column.removesuffix(" acc"), []).append(row.value or 0.0)
    return found


def test_the_published_ucr_table() -> None:
    ranking = rank(published())
    assert list(ranking.ranks)[:2] == ["Spectral-RNN", "oRNN"]
    assert sum(ranking.ranks.values()) == pytest.approx(10.0), "four ranks sum to 10 on every data set"
    assert ranking.data_sets == 21
    assert ranking.friedman is not None
    assert ranking.friedman < 0.001
    first = {c.second: c for c in ranking.pairs if c.first == "Spectral-RNN"}
    assert set(first) == {"oRNN", "LSTM", "RNN"}
    assert all(c.p < 0.05 for c in first.values())
    assert sum(first["RNN"].wins) == 21
    assert all("Spectral-RNN" not in group for group in ranking.groups)


def test_ties_share_their_rank_and_equal_models_a_group() -> None:
    ranking = rank({"a": [1.0, 2.0, 3.0], "b": [1.0, 2.0, 3.0], "c": [1.0, 2.0, 3.0]})
    assert set(ranking.ranks.values()) == {2.0}
    assert ranking.groups == [("a", "b", "c")]
    assert ranking.friedman is None


def test_where_less_is_better_the_order_turns_round() -> None:
    scores = {"a": [1.0, 2.0, 3.0], "b": [2.0, 3.0, 5.0]}
    assert list(rank(scores).ranks) == ["b", "a"]
    (pair,) = rank(scores, higher=False).pairs
    assert (pair.first, pair.second, pair.wins) == ("a", "b", (3, 0, 0))
    assert pair.difference == 1.0


def test_wilcoxon_is_scipys_and_exact_with_ties_and_zeros_of_few() -> None:
    """Four wins: the least two-sided p-value that there is. Equal sizes, one of them nothing: by hand."""
    a, b = [0.9, 0.8, 0.7, 0.95, 0.6, 0.5], [0.7, 0.75, 0.65, 0.9, 0.61, 0.3]
    assert signed_rank(a, b) == pytest.approx(stats.wilcoxon(a, b, method="exact").pvalue)
    assert signed_rank(a, a) == 1.0
    long = [*a, *(x + 0.013 for x in a), 0.44], [*b, *(x + 0.021 for x in b), 0.44]
    apart = np.round(np.subtract(*long), 9)  # of which some are ties but for rounding
    expected = stats.wilcoxon(apart, zero_method="zsplit", method="asymptotic").pvalue  # a zero: no exact test
    assert signed_rank(*long) == pytest.approx(expected)
    assert signed_rank([4, 5, 6, 7], [1, 1, 1, 1]) == pytest.approx(2 / 2**4)
    assert signed_rank([2, 2, 1], [1, 1, 1], "greater") == pytest.approx(2 / 2**3)


def test_a_model_that_diverged_is_the_worst_on_its_data_set() -> None:
    ours, theirs = [0.9, 0.8, 0.7, 0.9, 0.6], [0.7, 0.75, 0.65, 0.9, float("-inf")]
    assert signed_rank(ours, theirs, "greater") == pytest.approx(signed_rank(ours, [*theirs[:4], -100.0], "greater"))
    (pair,) = rank({"a": ours, "b": theirs}).pairs
    assert pair.wins == (4, 1, 0)
    assert signed_rank([float("-inf")] * 5, [float("-inf")] * 5) == 1.0


def test_the_interquartile_mean_leaves_out_a_quarter_at_each_end() -> None:
    scores = [[0.1, 0.5, 0.6, 9.0], [0.4, 0.7, -5.0, 0.8]]
    value, (low, high) = interquartile_mean(scores)
    assert value == pytest.approx((0.4 + 0.5 + 0.6 + 0.7) / 4)
    assert low < value < high
    assert interquartile_mean(scores) == (value, (low, high)), "the same scores have another interval"
    same = interquartile_mean([[0.1] * 4, [0.9] * 4])[1]
    assert same == pytest.approx((0.5, 0.5)), "seeds are resampled within a data set alone: nothing varies"


def test_the_chance_of_beating_counts_ties_as_half_and_a_diverged_seed_as_lost() -> None:
    assert improvement([[2.0, 3.0]], [[1.0, 1.5]]) == (1.0, (1.0, 1.0))
    assert improvement([[1.0, 1.0]], [[1.0, 1.0]]) == (0.5, (0.5, 0.5))
    value, (low, high) = improvement([[1.0, 3.0], [5.0, 5.0]], [[2.0, 2.0], [5.0, 4.0]])
    assert value == pytest.approx((0.5 + 0.75) / 2)
    assert low < value < high
    assert improvement([[0.5, -math.inf]], [[0.4, 0.3]])[0] == 0.5


def test_five_seeds_cover_the_true_mean_nearly_as_often_as_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 21 data sets; without the factor sqrt(n / (n - 1)) 370 of 400 intervals hold it, with it 377."""
    monkeypatch.setattr(bootstrap, "RESAMPLES", 500)
    rng = np.random.default_rng(3)
    held = 0
    for _ in range(400):
        low, high = interquartile_mean(rng.normal(size=(21, 5)).tolist())[1]
        held += low <= 0 <= high
    assert held >= 374


GOOD, BAD = [1.0, 0.99, 1.0], [0.5, 0.4, 0.6]
SPREAD = [1.0, 0.9, 1.0]  # mean 0.967, but the lower bound is 0.967 - 4.303 * 0.0577 / sqrt(3) = 0.823


def test_the_lower_bound_is_that_of_students_t() -> None:
    assert lower_bound(SPREAD) == pytest.approx(0.96667 - 4.30265 * 0.057735 / 3**0.5, abs=1e-4)
    assert lower_bound([1.0, 1.0, 1.0]) == 1.0
    for few_or_diverged in ([1.0, 1.0], [1.0, 1.0, None], [1.0, 1.0, 1.0, None], []):
        assert lower_bound(few_or_diverged) is None


@pytest.mark.parametrize(
    ("curve", "expected", "not_held"),
    [
        ({10: GOOD, 40: GOOD, 80: GOOD, 160: BAD}, 80, ()),
        ({10: GOOD, 40: GOOD, 80: SPREAD}, 40, ()),
        ({160: GOOD, 80: SPREAD, 40: GOOD, 5: BAD}, 160, (5, 80)),
        ({40: GOOD, 80: BAD, 160: GOOD}, 160, (80,)),  # the greatest, whatever lies between
        ({40: GOOD, 80: [1.0, 1.0, None], 160: GOOD}, 160, (80,)),
        ({10: GOOD, 40: BAD, 80: GOOD}, None, ()),
        ({10: SPREAD, 80: GOOD}, None, ()),
        ({40: [1.0, 1.0], 80: GOOD}, None, ()),
        ({40: [0.9, 0.9, 0.9]}, None, ()),  # above 0.9, not at it
        ({40: GOOD, 80: [1.0, 1.0, None]}, 40, ()),
    ],
)
def test_the_greatest_length_that_is_held_and_those_below_that_are_not(
    curve: dict[int, list[float | None]], expected: int | None, not_held: tuple[int, ...]
) -> None:
    assert horizon(curve, (10, 40)) == expected
    assert holes(curve, (10, 40)) == not_held
    with pytest.raises(ValueError, match=r"range of training, 10\.\.40"):
        horizon({80: GOOD}, (10, 40))
