import numpy as np
import pytest
from scipy.stats import binom

import orthobench
from orthobench.errors import ConfigError
from orthobench.tasks.drawn.kth_largest import KthLargest, law


@pytest.mark.parametrize(("T", "accuracy", "loss"), [(100, 0.136, 2.48), (200, 0.133, 2.51), (400, 0.131, 2.53)])
def test_best_constant(T: int, accuracy: float, loss: float) -> None:
    task = KthLargest(T=T)
    assert task.baseline["accuracy"] == pytest.approx(accuracy, abs=5e-4)
    assert task.baseline["loss"] == pytest.approx(loss, abs=5e-3)
    assert int(law(T, 10).argmax()) == T - 10


@pytest.mark.parametrize(("T", "k"), [(100, 10), (400, 10), (400, 200), (7, 7), (7, 1), (2, 2), (1, 1)])
def test_law_is_the_binomial_one(T: int, k: int) -> None:
    at_most = binom.cdf(k - 1, T, 1 - np.arange(1, T + 1) / T)
    np.testing.assert_allclose(law(T, k), np.diff(at_most, prepend=0), atol=1e-12)  # lgamma in place of exact sums
    assert law(T, k).sum() == pytest.approx(1)


@pytest.mark.parametrize(("T", "k"), [(20, 1), (20, 10), (20, 20), (100, 10)])
def test_duplicates_count(T: int, k: int) -> None:
    x, target = (a.numpy() for a in KthLargest(T=T, k=k).sample(300, seed=1))
    np.testing.assert_array_equal(target, -np.sort(-x, axis=1)[:, k - 1])


def test_drawn_targets_follow_the_law() -> None:
    _, target = KthLargest(T=30, k=5).sample(20_000, seed=1)
    shares = np.bincount(target.numpy(), minlength=30) / 20_000
    assert np.abs(shares - law(30, 5)).max() < 0.015  # four standard errors of a share of 0.15


def test_k_beyond_the_count_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"task\.k=10 .* T=5"):
        KthLargest(T=5)


def test_one_number_alone_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"T=1 is out of range: it must be >= 2"):
        orthobench.build("task=kth_largest", "T=1", "task.k=1")
