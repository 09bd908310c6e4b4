"""Numbers that are read off a curve."""

from math import inf, nan

import pytest

from orthobench.study.tables.curve_values import from_curve, time_to_level


def curve(*values: float) -> list[list[float]]:
    return [[100 * i, value] for i, value in enumerate(values, start=1)]


@pytest.mark.parametrize(
    ("values", "time"),
    [
        ((2, 1.5, 0.5, 0.4, 0.3, 0.2), 300),
        ((2, 2, 0.999, 0.999, 0.999, 0.999, 0.999), inf),  # not clearly below
        ((2, 2, 0.1, 2, 2, 2, 2), inf),  # one outlier
        ((2, 0.5, 0.5, 2, 0.5, 0.5, 0.5), 200),  # one bad validation among good ones
        ((2, 0.5, 0.5, 2, 2, 2, 0.5), inf),  # not for three validations
        ((2, 2, 2, 2, 0.5, 0.5), inf),  # two alone, at the end
        ((0.5, 0.5, 0.5, 3, inf, nan), 100),  # blew up later
        ((0.5, 0.5), inf),
        ((), inf),
    ],
    ids=str,
)
def test_the_first_validation_from_which_it_stays_below(values: tuple[float, ...], time: float) -> None:
    assert time_to_level(curve(*values), 1.0) == time


def test_levels_by_name() -> None:
    points = {"val/loss": curve(2, 0.8, 0.7, 0.6, 0.05, 0.05, 0.05)}
    wanted = [f"val/loss@{when}" for when in ("below_baseline", "below_tenth", "below_0.5", "fall")]
    assert from_curve([*wanted, "no@below_tenth", "plain"], points, {"loss": 1.0}) == {
        "val/loss@below_baseline": 200, "val/loss@below_tenth": 500, "val/loss@below_0.5": 500, "val/loss@fall": 300,
        "no@below_tenth": None,
    }  # fmt: skip
    assert from_curve(wanted, points, {}) == {
        "val/loss@below_baseline": None, "val/loss@below_tenth": None, "val/loss@below_0.5": 500, "val/loss@fall": None,
    }  # fmt: skip
    assert from_curve(wanted[-1:], points, {"loss": 0.1}) == {"val/loss@fall": inf}


def test_points_and_shapes() -> None:
    points = {"loss": [[0, 3.0], [2, 1.0], [4, 2.0], [6, 1.5], [8, 2.5]]}
    wanted = {
        "0": 3.0, "2": 1.0, "3": None, "first": 1.0, "last": 2.5, "min": 1.0, "max": 3.0, "growth": -0.5,
        "rebound": 1.5, "rises": 2.0, "sd": pytest.approx(0.7905694),
    }  # fmt: skip
    assert from_curve([f"loss@{when}" for when in wanted] + ["other@last", "plain"], points, {}) == {
        **{f"loss@{when}": value for when, value in wanted.items()}, "other@last": None,
    }  # fmt: skip
