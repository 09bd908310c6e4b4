"""Short tasks of memory: duration, parentheses, the k-th largest number and recall."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import binom

import orthobench
from orthobench.errors import ConfigError
from orthobench.tasks.drawn.kth_largest import KthLargest, law
from orthobench.tasks.drawn.parenthesis import Parenthesis, count
from orthobench.tasks.drawn.recall import Recall
from orthobench.tasks.duration import Duration, duration


@pytest.mark.parametrize(
    ("trainer", "expected"),
    [
        ({"max_steps": 10_000}, Duration(1100, 1, 10_000, 1100)),
        ({"max_epochs": 70}, Duration(1100, 1, 77_000, 1100)),
        ({"max_epochs": 70, "max_steps": -1}, Duration(1100, 1, 77_000, 1100)),
        ({"max_epochs": 2, "max_steps": 500}, Duration(1100, 1, 500, 1100)),
        ({"max_epochs": 2, "max_steps": 5000}, Duration(1100, 1, 2200, 1100)),
        ({"max_epochs": 2, "limit_train_batches": 50}, Duration(50, 1, 100, 50)),
        ({"max_epochs": 2, "limit_train_batches": 0.5}, Duration(550, 1, 1100, 550)),
        ({"max_epochs": 2, "limit_train_batches": 1e-9}, Duration(1, 1, 2, 1)),
        ({"max_epochs": 2, "limit_train_batches": 2000}, Duration(1100, 1, 2200, 1100)),
        ({"max_epochs": 2, "limit_train_batches": 1}, Duration(1, 1, 2, 1)),
        ({"max_time": "00:01:00:00", "max_steps": -1, "max_epochs": None}, Duration(1100, 1, None, 1100)),
        ({"max_epochs": 2, "accumulate_grad_batches": 4}, Duration(1100, 4, 550, 1100)),
        ({"max_epochs": 2, "accumulate_grad_batches": None}, Duration(1100, 1, 2200, 1100)),
        ({"max_epochs": 2, "accumulate_grad_batches": 5000}, Duration(1100, 5000, 1, 5000)),  # one step at least
        ({"max_steps": 9, "val_check_interval": 10, "accumulate_grad_batches": 4}, Duration(1100, 4, 9, 40)),
        ({"max_steps": 9, "val_check_interval": 0.01, "accumulate_grad_batches": 4}, Duration(1100, 4, 9, 12)),
        ({"max_steps": 9, "val_check_interval": 500}, Duration(1100, 1, 9, 500)),
        ({"max_steps": 9, "val_check_interval": 2500}, Duration(1100, 1, 9, 2500)),
        ({"max_steps": 9, "val_check_interval": 0.25}, Duration(1100, 1, 9, 275)),
        ({"max_steps": 9, "val_check_interval": 1e-9}, Duration(1100, 1, 9, 1)),
        ({"max_steps": 9, "val_check_interval": 1}, Duration(1100, 1, 9, 1)),
        ({"max_steps": 9, "val_check_interval": 0.5, "limit_train_batches": 20}, Duration(20, 1, 9, 10)),
        ({"max_steps": 9, "check_val_every_n_epoch": 3}, Duration(1100, 1, 9, 3300)),
        ({"max_steps": 9, "min_steps": 4}, Duration(1100, 1, 9, 1100, 4)),
        ({"max_steps": 9, "min_epochs": 2}, Duration(1100, 1, 9, 1100, 2200)),
        ({"max_steps": 9, "min_epochs": 1, "accumulate_grad_batches": 3}, Duration(1100, 3, 9, 1101, 367)),  # whole
        ({"max_steps": 9, "min_epochs": 2, "min_steps": 4, "limit_train_batches": 5}, Duration(5, 1, 9, 5, 10)),
    ],
)
def test_duration(trainer: dict[str, Any], expected: Duration) -> None:
    assert duration(trainer, 1100) == expected


@pytest.mark.parametrize(("batches", "accumulate", "steps"), [(1100, 1, 1100), (1100, 4, 275), (10, 3, 3), (10, 20, 1)])
def test_steps_of_an_epoch_and_whole_epochs(batches: int, accumulate: int, steps: int) -> None:
    assert Duration(batches, accumulate, None, 1).epoch_steps == steps
    assert [Duration(1100, 4, None, 1).epochs(n) for n in (0, 274, 275, 549, 550)] == [0, 0, 1, 1, 2]


@pytest.mark.parametrize(
    ("T", "constant", "per_step"),
    [(100, 0.1356, 0.1310), (200, 0.1380, 0.1349)],  # levels worked out from the authors' generator
)
def test_baselines_are_the_known_levels(T: int, constant: float, per_step: float) -> None:
    levels = Parenthesis(T=T, variant="code").baseline
    assert levels["loss_zero"] == pytest.approx(1 / 6)
    assert levels["loss"] == pytest.approx(constant, abs=5e-5)
    assert levels["loss_per_step"] == pytest.approx(per_step, abs=5e-5)


@pytest.mark.parametrize(("variant", "tokens", "outputs"), [("code", 7, 18), ("paper", 21, 110)])
def test_sizes(variant: str, tokens: int, outputs: int) -> None:
    task = Parenthesis(T=30, variant=variant)
    x, target = task.sample(4, seed=1)
    assert (task.input_size, task.output_size) == (tokens, outputs)
    assert x.shape == (4, 30)
    assert target.shape == (4, 30, outputs)
    assert 0 <= int(x.min()) <= int(x.max()) < tokens


def test_counters_follow_a_plain_loop_and_do_not_remember_by_how_much_they_saturated() -> None:
    rng = np.random.default_rng(3)
    x = rng.integers(0, 7, (20, 60))
    expected = np.zeros((20, 60, 3), dtype=int)
    for b in range(20):
        now = [0, 0, 0]
        for t, token in enumerate(x[b]):
            if token < 6:
                kind = token // 2
                now[kind] = min(5, now[kind] + 1) if token % 2 == 0 else max(0, now[kind] - 1)
            expected[b, t] = now
    np.testing.assert_array_equal(count(x, 3, 5), expected)
    x = np.array([[0] * 8 + [1] * 8 + [6, 0]])
    assert count(x, 3, 5)[0, :, 0].tolist() == [1, 2, 3, 4, 5, 5, 5, 5, 4, 3, 2, 1, 0, 0, 0, 0, 0, 1]


def test_targets_are_one_hot_per_kind_and_the_perfect_answer() -> None:
    task = Parenthesis(T=40, variant="code")
    _, target = task.sample(6, seed=2)
    assert torch.equal(target.unflatten(-1, (3, 6)).sum(-1), torch.ones(6, 40, 3))
    found = {name: float(value) for name, value in task.measure(target, target).items()}
    assert found == {"loss": 0.0, "accuracy": 1.0, "exact": 1.0}


def test_constant_baseline_is_what_the_constant_scores() -> None:
    task = Parenthesis(T=50, variant="code")
    _, target = task.sample(20_000, seed=5)
    mean = target.double().mean((0, 1))
    measured = task.measure(mean.expand_as(target), target.double())
    assert float(measured["loss"]) == pytest.approx(task.baseline["loss"], abs=2e-4)  # sampling error, 1e6 steps
    assert float(measured["accuracy"]) == pytest.approx(task.baseline["accuracy"], abs=3e-3)


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


@pytest.mark.parametrize(
    ("words", "message"),
    [(("T=5",), r"task\.k=10 .* T=5"), (("T=1", "task.k=1"), r"T=1 is out of range: it must be >= 2")],
)
def test_fewer_numbers_than_are_asked_for_are_refused(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        assert orthobench.build("task=kth_largest", *words).task


@pytest.mark.parametrize("T", [1, 20, 100])
def test_target_is_the_first_number(T: int) -> None:
    x, target = Recall(T=T).sample(50, seed=1)
    assert x.shape == (50, T)
    assert torch.equal(target, x[:, 0])


def test_numbers_are_uniform_and_guessing_is_the_baseline() -> None:
    task = Recall(T=100)
    assert task.baseline == {"loss": pytest.approx(2.302585, abs=1e-6), "accuracy": 0.1}
    assert Recall(symbols=4).baseline["loss"] == pytest.approx(math.log(4))
    counts = torch.bincount(task.sample(2000, seed=1)[0].flatten(), minlength=10).double()
    assert float(((counts - 20_000) ** 2 / 20_000).sum()) < 34  # chi-squared, 9 degrees of freedom, p < 1e-4
