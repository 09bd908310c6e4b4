"""Intervals and paired tests."""

import math

import pytest
from scipy import stats

from orthobench.analysis.statistics import Scores, holm, less_spread, paired, t_interval, wilson


def scores(*values: float | None, planned: int | None = None) -> Scores:
    return Scores(dict(enumerate(values, start=1)), len(values) if planned is None else planned)


def test_the_t_interval_is_that_of_the_textbook() -> None:
    """Mean 3, s = sqrt(2.5), t(4) = 2.7764."""
    low, high = t_interval([1.0, 2.0, 3.0, 4.0, 5.0]) or (0, 0)
    assert (low, high) == pytest.approx((3 - 2.77645 * math.sqrt(2.5 / 5), 3 + 2.77645 * math.sqrt(2.5 / 5)), abs=1e-4)


def test_two_values_have_no_interval_of_the_mean() -> None:
    assert t_interval([1.0, 2.0]) is None


def test_wilson() -> None:
    assert wilson(9, 10) == pytest.approx((0.5958, 0.9821), abs=1e-4)
    assert wilson(10, 10)[1] == 1.0


def test_a_diverged_seed_is_the_worst_of_the_median() -> None:
    assert scores(0.1, 0.2, None).median(higher_is_better=False) == 0.2
    assert scores(0.1, 0.2, None).median(higher_is_better=True) == 0.1
    assert scores(0.1, None, None).median(higher_is_better=False) is None


def test_the_paired_test_is_scipys() -> None:
    a, b = scores(1.0, 2.0, 3.5, 4.0), scores(1.5, 2.2, 4.4, 4.1)
    assert paired(a, b, "less") == pytest.approx(stats.ttest_rel(a.values, b.values, alternative="less").pvalue)
    assert paired(a, b, "greater") == pytest.approx(1 - (paired(a, b, "less") or 0))


def test_only_seeds_that_both_have_are_paired() -> None:
    a, b = Scores({1: 1.0, 2: 2.0, 3: 9.0}), Scores({1: 2.0, 2: 3.5, 4: 0.0})
    assert paired(a, b, "less") == pytest.approx(stats.ttest_rel([1.0, 2.0], [2.0, 3.5], alternative="less").pvalue)
    assert paired(a, Scores({1: 1.0}), "less") is None


def test_a_diverged_seed_loses_its_pair() -> None:
    a, b = scores(0.1, 0.1, 0.1, 0.1, 0.1), scores(0.2, 0.2, None, 0.2, 0.2)
    assert paired(a, b, "less") == pytest.approx(0.5**5)
    assert paired(b, a, "less") == 1.0
    assert paired(scores(None, None), scores(None, None), "less") == 1.0


def test_equal_differences_need_no_variance() -> None:
    assert paired(scores(1.0, 2.0), scores(2.0, 3.0), "less") == 0.0
    assert paired(scores(1.0, 2.0), scores(2.0, 3.0), "greater") == 1.0
    assert paired(scores(1.0, 2.0), scores(1.0, 2.0), "less") == 1.0


def test_spread() -> None:
    p = less_spread(scores(1.0, 1.1, 0.9, 1.0), scores(0.0, 2.0, 4.0, 1.0))
    assert p is not None
    assert p < 0.01
    assert less_spread(scores(1.0), scores(1.0, 2.0)) is None


def test_holm() -> None:
    """Holm 1979: sorted p-values times the number of hypotheses left, never decreasing."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []
