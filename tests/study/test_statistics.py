"""Seeds as numbers, intervals, and Holm's correction."""

import math
import statistics

import pytest

from orthobench.study.statistics.statistics import Scores, holm, share_interval, t_interval


def scores(*values: float | None, planned: int | None = None) -> Scores:
    return Scores(dict(enumerate(values, start=1)), len(values) if planned is None else planned)


def test_the_t_interval_is_that_of_the_textbook() -> None:
    """Mean 3, s = sqrt(2.5), t(4) = 2.7764."""
    low, high = t_interval([1.0, 2.0, 3.0, 4.0, 5.0]) or (0, 0)
    assert (low, high) == pytest.approx((3 - 2.77645 * math.sqrt(2.5 / 5), 3 + 2.77645 * math.sqrt(2.5 / 5)), abs=1e-4)


def test_two_values_have_no_interval_of_the_mean() -> None:
    assert t_interval([1.0, 2.0]) is None


def test_wilson() -> None:
    assert share_interval(9, 10) == pytest.approx((0.5958, 0.9821), abs=1e-4)
    assert share_interval(10, 10)[1] == 1.0


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
    from scipy import stats

    for count in range(3, 40):
        values = [float(value**2 % 7) for value in range(count)]
        low, high = stats.t.interval(0.95, count - 1)
        scale = statistics.stdev(values) / math.sqrt(count)
        centre = statistics.mean(values)
        assert t_interval(values) == (float(low) * scale + centre, float(high) * scale + centre)
        for successes in range(count + 1):
            found = stats.binomtest(successes, count).proportion_ci(0.95, method="wilson")
            assert share_interval(successes, count) == (float(found.low), float(found.high))
