import itertools

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from torch import Tensor
from torch.nn import functional as F

from orthobench.tasks.drawn.modular_arithmetic import ModularArithmetic

WRITTEN = "01234+-*"


def evaluated(x: Tensor) -> Tensor:
    """What Python answers, at every digit."""
    answers = torch.zeros_like(x)
    for row, tokens in enumerate(x.tolist()):
        text = "".join(WRITTEN[token] for token in tokens)
        for t in range(0, len(text), 2):
            answers[row, t] = eval(text[: t + 1]) % 5
    return F.one_hot(answers, 5).float()


@pytest.mark.parametrize("labels", ["last", "every"])
@pytest.mark.parametrize("length", [1, 3, 39, 99])
def test_python_is_perfect(labels: str, length: int) -> None:
    task = ModularArithmetic(labels=labels).at_length(length)
    x, target, mask = task.batch("test", 0, 0)
    assert float(task.measure(evaluated(x), target, mask)["score"]) == pytest.approx(1, abs=1e-6)


def test_sequences_of_the_range_have_the_value_of_what_was_not_cut_off() -> None:
    task = ModularArithmetic(length=(3, 9))
    x, target, mask = task.sample(300, 1)
    for tokens, answers, due in zip(x.tolist(), target, mask, strict=True):
        length = int(due.argmax()) + 1
        assert eval("".join(WRITTEN[token] for token in tokens[:length])) % 5 == int(answers[length - 1])


@pytest.mark.parametrize("length", [1, 3, 5])
def test_the_trivial_score_is_that_of_the_commonest_value(length: int) -> None:
    alphabets = [WRITTEN[:5] if t % 2 == 0 else WRITTEN[5:] for t in range(length)]
    values = [eval("".join(word)) % 5 for word in itertools.product(*alphabets)]
    p = np.bincount(values, minlength=5) / len(values)
    baseline = ModularArithmetic().at_length(length).baseline
    assert baseline == {"loss": pytest.approx(-(p * np.log(p)).sum()), "accuracy": pytest.approx(p.max()), "score": 0.0}


def test_who_does_not_look_scores_nothing() -> None:
    task = ModularArithmetic(length=(3, 9))
    _, target, mask = task.sample(10_000, 1)
    zero = F.one_hot(torch.zeros_like(target), 5).float()
    assert abs(float(task.measure(zero, target, mask)["score"])) < 4 * 0.005 / 0.75


def test_digits_and_signs_are_uniform_and_independent() -> None:
    x = ModularArithmetic(length=(5, 5)).sample(56_250, 1)[0].numpy()
    assert x[:, ::2].max() == 4
    assert (x[:, 1::2].min(), x[:, 1::2].max()) == (5, 7)
    codes = np.ravel_multi_index((x - [0, 5, 0, 5, 0]).T, (5, 3, 5, 3, 5))
    assert chisquare(np.bincount(codes, minlength=1125)).pvalue > 1e-4
