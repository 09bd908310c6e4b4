from collections import deque

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from torch import Tensor
from torch.nn import functional as F

from orthobench.tasks.drawn.cycle import Cycle

ROTATION = {0: 0, 1: 1, 2: -1}


def walked(x: Tensor) -> Tensor:
    """What a ring that is turned by every move answers."""
    answers = []
    for moves in x.tolist():
        ring, places = deque(range(5)), []
        for move in moves:
            ring.rotate(-ROTATION[move])
            places.append(ring[0])
        answers.append(places)
    return F.one_hot(torch.tensor(answers), 5).float()


@pytest.mark.parametrize("labels", ["last", "every"])
@pytest.mark.parametrize("length", [1, 40, 256])
def test_a_ring_is_perfect(labels: str, length: int) -> None:
    task = Cycle(labels=labels).at_length(length)
    x, target, mask = task.batch("test", 0, 0)
    assert float(task.measure(walked(x), target, mask)["score"]) == pytest.approx(1, abs=1e-6)


def test_who_does_not_look_scores_nothing() -> None:
    task = Cycle(length=(3, 10))
    _, target, mask = task.sample(10_000, 1)
    stays = F.one_hot(torch.zeros_like(target), 5).float()
    assert abs(float(task.measure(stays, target, mask)["score"])) < 4 * 0.005 / 0.77


def test_moves_are_uniform_and_independent() -> None:
    x = Cycle(length=(6, 6)).sample(36_450, 1)[0].numpy()
    assert chisquare(np.bincount(x @ 3 ** np.arange(6), minlength=729)).pvalue > 1e-4


@pytest.mark.parametrize(("length", "zero"), [(1, 1 / 3), (2, 3 / 9), (3, 7 / 27), (500, 0.2)])
def test_the_start_is_likelier_after_few_moves(length: int, zero: float) -> None:
    assert Cycle().at_length(length).baseline["accuracy"] == pytest.approx(zero)
