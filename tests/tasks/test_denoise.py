import math

import numpy as np
import pytest

from orthobench.tasks.drawn.denoise import Denoise, different, distinct


@pytest.mark.parametrize(("T", "loss"), [(100, 0.18310), (200, 0.09987), (400, 0.05231)])
@pytest.mark.parametrize("variant", ["paper", "code"])
def test_trivial_loss_is_the_printed_one(T: int, loss: float, variant: str) -> None:
    assert Denoise(T=T, variant=variant).baseline["loss"] == pytest.approx(loss, abs=5e-6)


@pytest.mark.parametrize(("T", "expected"), [(100, 9.60), (200, 9.79), (400, 9.89)])
def test_expected_number_of_different_places(T: int, expected: float) -> None:
    assert distinct(T + 9) == pytest.approx(expected, abs=5e-3)


def test_floor_is_zero_only_without_collisions() -> None:
    assert Denoise(T=100, variant="paper").baseline["loss_floor"] == 0
    floor = Denoise(T=100, variant="code").baseline["loss_floor"]
    assert floor == pytest.approx((10 - distinct(109)) * math.log(9) / 120)


@pytest.mark.parametrize(("variant", "inputs"), [("paper", 11), ("code", 10)])
def test_layout(variant: str, inputs: int) -> None:
    task = Denoise(T=25, variant=variant)
    x, target = (a.numpy() for a in task.sample(200, seed=1))
    assert (task.input_size, task.output_size, task.length) == (inputs, 10, 45)
    assert x.shape == target.shape == (200, 45)
    assert (x[:, 34] == 10).all()
    assert (x[:, 35:] == 0).all()
    assert (target[:, :35] == 0).all()
    assert set(np.unique(target[:, 35:])) == set(range(1, 10))


def test_paper_symbols_are_all_there_in_order() -> None:
    x, target = (a.numpy() for a in Denoise(T=1, variant="paper").sample(50, seed=1))  # ten places for ten symbols
    np.testing.assert_array_equal(x[:, :10], target[:, -10:])
    x, target = (a.numpy() for a in Denoise(T=60, variant="paper").sample(200, seed=1))
    for row, symbols in zip(x[:, :69], target[:, -10:], strict=True):
        np.testing.assert_array_equal(row[row > 0], symbols)


def test_a_later_symbol_is_written_over_an_earlier_one() -> None:
    x, target = (a.numpy() for a in Denoise(T=1, variant="code").sample(2000, seed=1))
    written = [row[row > 0] for row in x[:, :10]]
    assert np.mean([len(row) for row in written]) == pytest.approx(distinct(10), abs=0.1)  # five standard errors
    assert all(row[-1] == symbols[-1] for row, symbols in zip(written, target[:, -10:], strict=True))


def test_different_places_are_uniform_over_sets() -> None:
    places = np.sort(different(np.random.default_rng(0), 12, 66_000), axis=1)
    assert (np.diff(places, axis=1) > 0).all()
    left_out = np.array([np.setdiff1d(np.arange(12), row) for row in places[:6600]])
    counts = np.unique(left_out, axis=0, return_counts=True)[1]
    assert len(counts) == 66
    assert ((counts - 100) ** 2 / 100).sum() < 120  # chi-squared, 65 degrees of freedom, p < 1e-4
