import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from torch import Tensor
from torch.nn import functional as F

from orthobench.tasks.drawn.parity import Parity


def counted(x: Tensor) -> Tensor:
    """What a counter of ones answers at every step."""
    answers = []
    for bits in x.tolist():
        ones = 0
        answers.append([(ones := ones + bit) % 2 for bit in bits])
    return F.one_hot(torch.tensor(answers), 2).float()


@pytest.mark.parametrize("labels", ["last", "every"])
@pytest.mark.parametrize("length", [1, 40, 256])
def test_a_counter_is_perfect(labels: str, length: int) -> None:
    task = Parity(labels=labels).at_length(length)
    x, target, mask = task.batch("test", 0, 0)
    assert x.shape == (100, length)
    assert float(task.measure(counted(x), target, mask)["score"]) == 1


@pytest.mark.parametrize("labels", ["last", "every"])
def test_the_latest_bit_alone_scores_nothing(labels: str) -> None:
    task = Parity(labels=labels, length=(20, 40))
    x, target, mask = task.sample(4000, 1)
    score = float(task.measure(F.one_hot(x, 2).float(), target, mask)["score"])
    first = 0.0 if labels == "last" else 1 / 29  # the first bit is its own parity
    assert abs(score - first) < 4 / 4000**0.5


def test_bits_are_fair_and_independent() -> None:
    x = Parity(length=(10, 10)).sample(51_200, 1)[0].numpy()
    assert chisquare(np.bincount(x @ 2 ** np.arange(10), minlength=1024)).pvalue > 1e-4


def test_half_is_trivial_at_every_length() -> None:
    for length in (1, 3, 500):
        assert Parity().at_length(length).baseline == {"loss": pytest.approx(np.log(2)), "accuracy": 0.5, "score": 0.0}
