import math

import pytest
import torch

from orthobench.tasks.drawn.recall import Recall


@pytest.mark.parametrize("T", [1, 20, 100])
def test_target_is_the_first_number(T: int) -> None:
    x, target = Recall(T=T).sample(50, seed=1)
    assert x.shape == (50, T)
    assert torch.equal(target, x[:, 0])


def test_guessing_is_the_baseline() -> None:
    task = Recall()
    assert task.baseline == {"loss": pytest.approx(2.302585, abs=1e-6), "accuracy": 0.1}
    assert Recall(symbols=4).baseline["loss"] == pytest.approx(math.log(4))


def test_numbers_are_uniform() -> None:
    x, _ = Recall(T=100).sample(2000, seed=1)
    counts = torch.bincount(x.flatten(), minlength=10).double()
    assert float(((counts - 20_000) ** 2 / 20_000).sum()) < 34  # chi-squared, 9 degrees of freedom, p < 1e-4
