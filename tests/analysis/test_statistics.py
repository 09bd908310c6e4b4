"""Intervals, the rule for a status with a case for each, and paired tests."""

import math

import pytest
from scipy import stats

from orthobench.analysis.statistics import (
    BETTER,
    NOT_REPRODUCED,
    NOT_RUN,
    PARTIAL,
    REPRODUCED,
    UNSTABLE,
    WITHIN,
    Scores,
    holm,
    less_spread,
    paired,
    prediction_interval,
    status,
    t_interval,
    wilson,
)


def scores(*values: float | None, planned: int | None = None) -> Scores:
    return Scores(dict(enumerate(values, start=1)), len(values) if planned is None else planned)


def test_the_t_interval_is_that_of_the_textbook() -> None:
    """Mean 3, s = sqrt(2.5), t(4) = 2.7764."""
    low, high = t_interval([1.0, 2.0, 3.0, 4.0, 5.0]) or (0, 0)
    assert (low, high) == pytest.approx((3 - 2.77645 * math.sqrt(2.5 / 5), 3 + 2.77645 * math.sqrt(2.5 / 5)), abs=1e-4)


def test_two_values_have_no_interval_of_the_mean() -> None:
    assert t_interval([1.0, 2.0]) is None


@pytest.mark.parametrize("runs", [1, 10])
def test_the_prediction_interval_is_for_the_published_number_of_runs(runs: int) -> None:
    values = [0.97, 0.975, 0.98, 0.969]
    low, high = prediction_interval(values, runs) or (0, 0)
    half = stats.t.ppf(0.975, 3) * stats.tstd(values) * math.sqrt(1 / 4 + 1 / runs)
    assert (high - low) / 2 == pytest.approx(half)
    assert (high + low) / 2 == pytest.approx(sum(values) / 4)


def test_the_prediction_interval_covers_what_it_should() -> None:
    """2,000 draws of 5 + 1 normal values: a coverage of 95 %, with a standard error of 0.5 %."""
    import numpy as np

    draws = np.random.default_rng(3).normal(size=(2000, 6))
    inside = 0
    for row in draws:
        low, high = prediction_interval(row[:5].tolist()) or (0, 0)
        inside += low <= row[5] <= high
    assert inside / 2000 == pytest.approx(0.95, abs=0.015)


def test_wilson() -> None:
    assert wilson(9, 10) == pytest.approx((0.5958, 0.9821), abs=1e-4)
    assert wilson(10, 10)[1] == 1.0


@pytest.mark.parametrize(
    ("ours", "published", "margin", "expected"),
    [
        (scores(0.970, 0.972, 0.974), 0.973, 0.005, REPRODUCED),
        (scores(0.90, 0.95, 1.00), 0.973, 0.005, WITHIN),
        (scores(0.980, 0.981, 0.982), 0.973, 0.005, BETTER),
        (scores(0.960, 0.961, 0.962), 0.973, 0.005, NOT_REPRODUCED),
        (scores(0.970, 0.972, planned=3), 0.973, 0.005, PARTIAL),
        (scores(0.973, planned=1), 0.973, 0.005, PARTIAL),
        (scores(0.970, None, None), 0.973, 0.005, UNSTABLE),
        (scores(0.970, None, None, planned=9), 0.973, 0.005, UNSTABLE),
        (scores(0.970, 0.972, 0.974, None), 0.973, 0.005, REPRODUCED),
        (scores(planned=3), 0.973, 0.005, NOT_RUN),
        (scores(0.64, 0.64, 0.64), 0.64, 0.005, REPRODUCED),
        (scores(None, 0.97), 0.973, 0.005, PARTIAL),
    ],
)
def test_every_status(ours: Scores, published: float, margin: float, expected: str) -> None:
    assert status(ours, published, 1, margin, "higher").status == expected


def test_the_good_side_depends_on_the_metric() -> None:
    assert status(scores(1.0, 1.01, 1.02), 2.0, 1, 0.1, "lower").status == BETTER
    assert status(scores(1.0, 1.01, 1.02), 0.5, 1, 0.1, "lower").status == NOT_REPRODUCED


@pytest.mark.parametrize("published", [2.0, 0.5])
def test_what_is_no_score_has_no_good_side(published: float) -> None:
    assert status(scores(1.0, 1.01, 1.02), published, 1, 0.1, "neither").status == NOT_REPRODUCED


def test_a_partial_status_counts() -> None:
    assert str(status(scores(0.97, planned=5), 0.97, 1, 0.1, "higher")) == "partial (1 of 5)"
    assert str(status(scores(None, None, 1.0), 1.0, 1, 0.1, "higher")) == "unstable (2 of 3 diverged)"


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
