"""The horizon by its rule, on curves where it is known."""

import pytest

from orthobench.study.statistics.horizon import holes, horizon, lower_bound

GOOD, BAD = [1.0, 0.99, 1.0], [0.5, 0.4, 0.6]
SPREAD = [1.0, 0.9, 1.0]  # mean 0.967, but the lower bound is 0.967 - 4.303 * 0.0577 / sqrt(3) = 0.823


def test_the_lower_bound_is_that_of_students_t() -> None:
    assert lower_bound(SPREAD) == pytest.approx(0.96667 - 4.30265 * 0.057735 / 3**0.5, abs=1e-4)
    assert lower_bound([1.0, 1.0, 1.0]) == 1.0


@pytest.mark.parametrize("scores", [[1.0, 1.0], [1.0, 1.0, None], [1.0, 1.0, 1.0, None], []])
def test_there_is_no_bound_with_few_seeds_or_a_diverged_one(scores: list[float | None]) -> None:
    assert lower_bound(scores) is None


@pytest.mark.parametrize(
    ("curve", "expected"),
    [
        ({10: GOOD, 40: GOOD, 80: GOOD, 160: BAD}, 80),
        ({10: GOOD, 40: GOOD, 80: SPREAD}, 40),
        ({160: GOOD, 40: GOOD}, 160),
        ({40: GOOD, 80: BAD, 160: GOOD}, 160),  # the greatest, whatever lies between
        ({10: GOOD, 40: BAD, 80: GOOD}, None),
        ({10: SPREAD, 80: GOOD}, None),
        ({40: [1.0, 1.0], 80: GOOD}, None),
        ({40: [0.9, 0.9, 0.9]}, None),  # above 0.9, not at it
        ({40: GOOD, 80: [1.0, 1.0, None]}, 40),
    ],
)
def test_the_greatest_length_that_is_held(curve: dict[int, list[float | None]], expected: int | None) -> None:
    assert horizon(curve, (10, 40)) == expected


@pytest.mark.parametrize(
    ("curve", "expected"),
    [
        ({10: GOOD, 40: GOOD, 80: GOOD, 160: BAD}, ()),
        ({160: GOOD, 80: SPREAD, 40: GOOD, 5: BAD}, (5, 80)),
        ({40: GOOD, 80: [1.0, 1.0, None], 160: GOOD}, (80,)),
        ({40: BAD, 80: GOOD}, ()),
    ],
)
def test_lengths_below_it_that_are_not_held(curve: dict[int, list[float | None]], expected: tuple[int, ...]) -> None:
    assert holes(curve, (10, 40)) == expected


def test_a_curve_without_a_length_of_training_decides_nothing() -> None:
    with pytest.raises(ValueError, match=r"range of training, 10\.\.40"):
        horizon({80: GOOD}, (10, 40))
