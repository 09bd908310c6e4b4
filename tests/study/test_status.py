"""The rule for the status of a published number: worked examples, its properties, and how often it is right."""

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from scipy import stats

from orthobench.errors import ConfigError
from orthobench.study.statistics.status import STATUSES, count, judge, prediction_interval, says_nothing

D = 0.01
FINITE = some.floats(-1e3, 1e3)


def verdict(ours: list[float | None], published: float, **given: Any) -> str:
    arguments = {"margin": D, "direction": "higher", "planned": 3, **given}
    return judge(ours, published, **arguments).word


@pytest.mark.parametrize(
    ("ours", "published", "given", "word"),
    [
        ([], 0.9, {}, "not run"),
        ([0.9, 0.9, 0.9, None], 0.9, {}, "unstable"),
        ([None, None], 0.9, {"planned": 5}, "unstable"),
        ([0.9, 0.9], 0.9, {"planned": 2}, "partial"),
        ([0.9] * 4, 0.9, {"planned": 5}, "partial"),
        # t(2) = 4.3027: s = 0.001 gives w = 0.00248, s = 0.01 gives w = 0.0248
        ([0.899, 0.900, 0.901], 0.905, {}, "reproduced"),
        ([0.899, 0.900, 0.901], 0.910, {}, "reproduced"),
        ([0.89, 0.90, 0.91], 0.905, {}, "agrees, not precise"),
        # u = 0.005 for two decimals: 0.014 <= 0.01 + 0.005
        ([0.899, 0.900, 0.901], 0.914, {"decimals": 2}, "reproduced"),
        ([0.899, 0.900, 0.901], 0.914, {"decimals": 3}, "better or worse"),
        # the prediction interval reaches 4.3027 * 0.01 * sqrt(4 / 3) = 0.0497 to each side
        ([0.89, 0.90, 0.91], 0.949, {}, "agrees, not precise"),
        ([0.89, 0.90, 0.91], 0.951, {}, "better or worse"),
        ([0.89, 0.90, 0.91], 0.951, {"unstated": ["rate"]}, "underspecified"),
        ([0.89, 0.90, 0.91], 0.949, {"unstated": ["rate"]}, "agrees, not precise"),
        # one of a mean of many runs only 4.3027 * 0.01 * sqrt(1 / 3 + 1 / 100) = 0.0252
        ([0.89, 0.90, 0.91], 0.949, {"published_seeds": 100}, "better or worse"),
        # margin 0: only what is the same
        ([0.9, 0.9, 0.9], 0.9, {"margin": 0.0}, "reproduced"),
        ([0.9, 0.9, 0.9], 0.9, {"margin": 0.0, "resolution": 0.01}, "agrees, not precise"),
        ([0.9, 0.9, 0.9], 0.901, {"margin": 0.0}, "better or worse"),
        # at a bound
        ([1.0, 1.0, 1.0], 1.0, {"bounds": (0.0, 1.0)}, "reproduced"),
        ([0.95, 0.97, 0.99], 1.0, {"bounds": (0.0, 1.0)}, "agrees, not precise"),
        # 0.97 is 0.005 from 0.965, whatever binary fractions make of it
        ([0.97, 0.97, 0.97], 0.965, {"margin": 0.005}, "reproduced"),
    ],
)
def test_worked_examples(ours: list[float | None], published: float, given: dict[str, Any], word: str) -> None:
    if word != "better or worse":
        assert verdict(ours, published, **given) == word
        return
    assert verdict(ours, published, **given) == "not reproduced"
    assert verdict(ours, published, **given, direction="lower") == "better"
    assert verdict(ours, published, **given, direction="neither") == "differs"


@pytest.mark.parametrize(
    ("ours", "published", "given", "both"),
    [
        ([2.309, 2.310, 2.308, 2.309, 2.309], 2.33, {"margin": 0.1}, True),
        ([2.5, 2.9, 3.3], 2.33, {}, True),  # both worse than chance
        ([2.30, 2.29, 2.31], 1.0, {}, False),  # the paper learnt
        ([1.0, 1.001, 0.999], 2.33, {}, False),  # we did
        ([2.25, 2.26, 2.27], 2.27, {}, False),
    ],
)
def test_a_failure_that_is_reproduced_is_marked(
    ours: list[float | None], published: float, given: dict[str, Any], both: bool
) -> None:
    arguments = {"margin": D, "direction": "lower", "planned": 3, "trivial": 2.3026, **given}
    found = judge(ours, published, **arguments)
    assert ("trivial" in found.detail) == both
    assert not both or found.word == "reproduced"
    assert verdict([5.0, 5.1, 5.2], 9.0, trivial=2.0, direction="neither") == "differs", "of no score is a side worse"


def test_the_sentence_has_the_figures() -> None:
    found = judge([0.899, 0.900, 0.901], 0.914, margin=D, direction="higher", planned=3, decimals=2)
    assert found.detail == (
        "The mean of 3 seeds is 0.9 ± 0.00248, 0.014 from 0.914; the margin is 0.01 and the rounding 0.005."
    )
    assert str(judge([None] * 2 + [0.5] * 8, 0.5, margin=D, direction="higher", planned=10)) == "unstable (2 of 10)"
    assert str(judge([0.5], 0.5, margin=D, direction="higher", planned=2)) == "partial (1 of 3)"


def test_the_prediction_interval_by_hand() -> None:
    values = [0.97, 0.975, 0.98, 0.969]
    for runs in (1, 10):
        low, high = prediction_interval(values, published_seeds=runs) or (0, 0)
        half = stats.t.ppf(0.975, 3) * np.std(values, ddof=1) * math.sqrt(1 / 4 + 1 / runs)
        assert (high - low) / 2 == pytest.approx(half)
        assert (high + low) / 2 == pytest.approx(np.mean(values))
    assert prediction_interval([0.9]) is None
    half = stats.t.ppf(0.975, 2) * 0.01 / math.sqrt(12) * math.sqrt(4 / 3)  # equal seeds: as far as a metric resolves
    low, high = prediction_interval([0.5] * 3, resolution=0.01) or (0, 0)
    assert (high - low) / 2 == pytest.approx(half)


def test_a_printed_spread_is_the_papers() -> None:
    """Welch's interval, which SciPy computes for the difference of two means."""
    values = [94.0, 94.2, 94.1, 93.8]
    theirs = stats.zscore(np.arange(10.0), ddof=1) * 0.9
    difference = stats.ttest_ind(values, theirs, equal_var=False).confidence_interval(0.95)  # type: ignore[attr-defined]
    half = (difference.high - difference.low) / 2
    low, high = prediction_interval(values, published_sd=0.9, published_seeds=10) or (0, 0)
    assert (high - low) / 2 == pytest.approx(half)


def test_the_prediction_interval_stays_within_the_bounds() -> None:
    low, high = prediction_interval([0.1, 0.5, 0.9], bounds=(0.0, 1.0)) or (0, 0)
    assert (low, high) == (0.0, 1.0)
    assert says_nothing((low, high), (0.0, 1.0))
    assert not says_nothing((0.2, 0.7), (0.0, 1.0))
    assert not says_nothing((0.0, 9.0), (0.0, None))
    assert says_nothing((0.0, 9.0), (0.0, None), trivial=17.0), "a loss: from perfect to the trivial predictor"
    assert not says_nothing((0.0, 9.0), (0.0, None), trivial=19.0)
    assert not says_nothing((0.0, 9.0), (None, None), trivial=17.0), "a range needs one end of its own"
    assert not says_nothing((70.0, 100.0), (0.0, 100.0), trivial=50.0)
    assert says_nothing((70.0, 100.0), (0.0, 100.0), trivial=50.0, direction="higher"), "chance is half of them"
    assert says_nothing((0.0, 0.3), (0.0, 1.0), trivial=0.5, direction="lower")
    found = judge([0.1, 0.5, 0.9], 0.8, margin=D, direction="higher", planned=3, bounds=(0.0, 1.0))
    assert found.word == "agrees, not precise"
    assert "says nothing" in found.detail


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({"ours": [0.5, math.nan]}, r"ours\[1\]=nan"),
        ({"published": math.nan}, "published=nan"),
        ({"margin": math.inf}, "margin=inf"),
        ({"trivial": math.nan}, "trivial=nan"),
        ({"margin": -0.1}, "margin=-0.1 is below zero"),
        ({"planned": -1}, "planned=-1"),
        ({"published_sd": -1.0}, "published_sd"),
        ({"published": 97.5, "bounds": (0.0, 1.0)}, "outside the metric's bounds"),
        ({"ours": [1.5], "bounds": (0.0, 1.0)}, r"ours\[0\]=1.5"),
        ({"direction": "up"}, "direction=up"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, Any], key: str) -> None:
    arguments = {"ours": [0.5], "published": 0.5, "margin": 0.1, "direction": "higher", "planned": 3, **given}
    with pytest.raises(ConfigError, match=key):
        judge(arguments.pop("ours"), arguments.pop("published"), **arguments)


@given(some.lists(FINITE, max_size=8), FINITE, some.floats(0, 10), some.integers(1, 8), some.permutations(range(8)))
def test_properties(ours: list[float], published: float, margin: float, planned: int, order: list[int]) -> None:
    given: dict[str, Any] = {"margin": margin, "planned": planned}
    found = judge(ours, published, direction="higher", **given).word
    assert found in STATUSES
    shuffled = [ours[i] for i in order if i < len(ours)]
    assert judge(shuffled, published, direction="higher", **given).word == found
    mirrored = judge([-value for value in ours], -published, direction="lower", **given).word
    assert mirrored == found, "a loss is an accuracy upside down"
    if len(ours) < 3:
        assert found in ("not run", "partial"), "two seeds never give a verdict"
    if found == "reproduced":
        wider = judge(ours, published, direction="higher", margin=2 * margin + 1, planned=planned).word
        assert wider == "reproduced"
    if ours:
        assert judge([*ours, None], published, direction="higher", **given).word == "unstable"


def shares(gap: float, spread: float, n: int, draws: int = 1500) -> Counter[str]:
    """How often each status comes of a true gap and spread, in margins, at n seeds."""
    rng = np.random.default_rng([n, round(10 * abs(gap)), round(10 * spread)])
    ours = (0.5 + D * (gap + spread * rng.standard_normal((draws, n)))).tolist()
    return Counter(verdict(row, 0.5, planned=n) for row in ours)


def test_a_gap_below_the_margin_is_reproduced_more_often_with_more_seeds() -> None:
    found = [shares(0.8, 1.0, n)["reproduced"] / 1500 for n in (3, 10, 30, 300)]
    assert found == sorted(found)
    assert found[0] < 0.2
    assert found[-1] > 0.99


@pytest.mark.parametrize(("n", "at_most"), [(3, 0.005), (5, 0), (10, 0)])
def test_noisy_seeds_do_not_reproduce(n: int, at_most: float) -> None:
    """Of three seeds with s = 5 d, one in a thousand triples lies close together and close to the published number."""
    assert shares(0.0, 5.0, n)["reproduced"] <= at_most * 1500


@pytest.mark.parametrize("gap", [3.0, -3.0])
def test_a_wide_gap_is_seen_with_five_seeds(gap: float) -> None:
    found = shares(gap, 0.5, 5)
    assert found["better" if gap > 0 else "not reproduced"] >= 0.95 * 1500


def test_a_count_is_equal_up_to_its_rounding_and_named_as_it_was_printed() -> None:
    assert count(16415, 16000, 500).word == "count equal"
    assert count(16501, 16000, 500).word == "count differs"
    assert count(17930, 35000).detail == "The model has 17,930 parameters, the paper says 35,000."
    assert count(65_900, 65_536, 1023, "≈ 64k").detail == "The model has 65,900 parameters, the paper says ≈ 64k."
    assert count(65_900, 65_536, 1023).detail.endswith("the paper says about 65,536.")
