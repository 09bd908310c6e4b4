import numpy as np
import pytest
import torch

from orthobench.tasks.drawn.parenthesis import Parenthesis, count


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


def test_counters_follow_a_plain_loop() -> None:
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


def test_a_counter_saturates_and_does_not_remember_by_how_much() -> None:
    x = np.array([[0] * 8 + [1] * 8 + [6, 0]])
    assert count(x, 3, 5)[0, :, 0].tolist() == [1, 2, 3, 4, 5, 5, 5, 5, 4, 3, 2, 1, 0, 0, 0, 0, 0, 1]


def test_targets_are_one_hot_per_kind() -> None:
    _, target = Parenthesis(T=40, variant="code").sample(6, seed=2)
    assert torch.equal(target.unflatten(-1, (3, 6)).sum(-1), torch.ones(6, 40, 3))


def test_constant_baseline_is_what_the_constant_scores() -> None:
    task = Parenthesis(T=50, variant="code")
    _, target = task.sample(20_000, seed=5)
    mean = target.double().mean((0, 1))
    measured = task.measure(mean.expand_as(target), target.double())
    assert float(measured["loss"]) == pytest.approx(task.baseline["loss"], abs=2e-4)  # sampling error, 1e6 steps
    assert float(measured["accuracy"]) == pytest.approx(task.baseline["accuracy"], abs=3e-3)


def test_a_perfect_answer() -> None:
    task = Parenthesis(T=10)
    _, target = task.sample(3, seed=1)
    assert {name: float(value) for name, value in task.measure(target, target).items()} == {
        "loss": 0.0,
        "accuracy": 1.0,
        "exact": 1.0,
    }
