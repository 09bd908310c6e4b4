"""Labels, lengths and baselines of the state-tracking tasks, and even pairs."""

import itertools
from collections import Counter, deque
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from torch import Tensor
from torch.nn import functional as F

from orthobench.errors import ConfigError
from orthobench.tasks.drawn.cycle import Cycle
from orthobench.tasks.drawn.even_pairs import EvenPairs
from orthobench.tasks.drawn.group_word import GroupWord
from orthobench.tasks.drawn.modular_arithmetic import ModularArithmetic
from orthobench.tasks.drawn.parity import Parity
from orthobench.tasks.drawn.tracking import Labels, LastOrEvery, Tracking

BOTH: list[type[LastOrEvery]] = [Parity, Cycle, ModularArithmetic]
STRIDE = {Parity: 1, Cycle: 1, ModularArithmetic: 2, GroupWord: 1}


@pytest.mark.parametrize("cls", BOTH)
def test_both_kinds_of_labels_are_of_the_same_sequences(cls: type[LastOrEvery]) -> None:
    one, all_of_them = (cls(labels=labels, batch_size=50) for labels in ("last", "every"))
    assert one.metrics == ("loss", "accuracy", "score")
    assert all_of_them.metrics == ("loss", "accuracy", "score", "last_score", "last_accuracy")
    (x, target, last), (same_x, every_target, every) = (task.batch("train", 0, 0) for task in (one, all_of_them))
    assert torch.equal(x, same_x)
    assert last.sum(1).tolist() == [1] * 50
    assert torch.equal(target, every_target * last.long())
    end = last.argmax(1)
    for row, mask in enumerate(every):
        assert np.nonzero(mask.numpy())[0].tolist() == list(range(0, int(end[row]) + 1, STRIDE[cls]))
        assert not x[row, int(end[row]) + 1 :].any()


@pytest.mark.parametrize("cls", [*BOTH, GroupWord])
def test_lengths_are_uniform(cls: type[Tracking]) -> None:
    stride = STRIDE[cls]
    mask = cls(length=(3, 39)).sample(20_000, 1)[2].numpy()
    length = mask.shape[1] - (mask[:, ::-1] > 0).argmax(1)
    counts = Counter(length.tolist())
    assert sorted(counts) == list(range(3, 40, stride))
    assert chisquare(list(counts.values())).pvalue > 1e-4


@pytest.mark.parametrize("labels", ["last", "every"])
@pytest.mark.parametrize("cls", BOTH)
def test_the_baseline_is_what_the_law_of_a_step_scores(cls: type[LastOrEvery], labels: Labels) -> None:
    """The law is estimated from other sequences, so that nothing of it is taken from the task."""
    task: Any = cls(length=(3, 7), labels=labels)
    _, target, mask = cls(length=(3, 7), labels="every").sample(200_000, 1)
    law = torch.stack([
        torch.bincount(target[mask[:, t] > 0, t], minlength=task.output_size).double() + 1e-9 for t in range(7)
    ])  # fmt: skip
    _, target, mask = task.sample(100_000, 2)
    y = torch.log(law / law.sum(1, keepdim=True)).expand(len(target), -1, -1)
    found = task.measure(y, target, mask)
    assert float(found["loss"]) == pytest.approx(task.baseline["loss"], abs=5e-3)
    assert float(found["accuracy"]) == pytest.approx(task.baseline["accuracy"], abs=8e-3)
    for name in set(found) & {"score", "last_score"}:
        assert float(found[name]) == pytest.approx(0, abs=0.015)


@pytest.mark.parametrize(("cls", "length"), [(Parity, 10), (Cycle, 10), (GroupWord, 10), (ModularArithmetic, 11)])
def test_the_last_score_is_that_of_the_last_step(cls: type[Tracking], length: int) -> None:
    task = cls(**({} if cls is GroupWord else {"labels": "every"})).at_length(length)  # type: ignore[arg-type]
    _, target, mask = task.batch("test", 0, 0)
    y = F.one_hot(target, task.output_size).float()
    y[:, length - 1] = y[:, length - 1].roll(1, -1)
    found = task.measure(y, target, mask)
    assert float(found["last_score"]) == pytest.approx(-task.last_chance / (1 - task.last_chance), abs=1e-6)
    assert float(found["last_accuracy"]) == 0
    assert task.baseline["last_accuracy"] == task.last_chance
    assert float(found["accuracy"]) == pytest.approx(1 - 1 / task.answers)


@pytest.mark.parametrize("cls", [*BOTH, GroupWord])
def test_the_test_may_have_lengths_of_its_own(cls: type[Tracking]) -> None:
    """Its sequences, baseline and scores are those of a task of these lengths; training and validation stay."""
    task: Any = cls(length=(3, 9), test_length=(21, 41), seed=3)
    short, long = cls(length=(3, 9), seed=3), cls(length=(21, 41), seed=3)
    for split, same in {"train": short, "val": short, "test": long}.items():
        assert all(map(torch.equal, task.batch(split, 0, 0), same.batch(split, 0, 0)))
    assert (task.baseline, task.chance, task.test_steps) == (long.baseline, long.chance, 41)
    assert all(map(torch.equal, task.at_length(61).batch("test", 0, 0), long.at_length(61).batch("test", 0, 0)))
    assert "test_length" not in cls.resolve({"test_length": None}, Path())


def test_even_pairs_order_blind_answer_is_of_the_test() -> None:
    assert EvenPairs(length=(3, 4), test_length=(9, 9)).order_blind == EvenPairs(length=(9, 9)).order_blind


def counted(x: Tensor) -> Tensor:
    """What a counter of ones answers at every step."""
    answers = []
    for bits in x.tolist():
        ones = 0
        answers.append([(ones := ones + bit) % 2 for bit in bits])
    return F.one_hot(torch.tensor(answers), 2).float()


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


WRITTEN = "01234+-*"


def evaluated(x: Tensor) -> Tensor:
    """What Python answers, at every digit."""
    answers = torch.zeros_like(x)
    for row, tokens in enumerate(x.tolist()):
        text = "".join(WRITTEN[token] for token in tokens)
        for t in range(0, len(text), 2):
            answers[row, t] = eval(text[: t + 1]) % 5
    return F.one_hot(answers, 5).float()


ORACLES: list[Any] = [(Parity, counted), (Cycle, walked), (ModularArithmetic, evaluated)]


@pytest.mark.parametrize("labels", ["last", "every"])
@pytest.mark.parametrize("length", [1, 3, 39, 255])
@pytest.mark.parametrize(("cls", "oracle"), ORACLES)
def test_a_machine_that_follows_is_perfect(cls: type[LastOrEvery], oracle: Any, length: int, labels: Labels) -> None:
    task = cls(labels=labels).at_length(length)
    x, target, mask = task.batch("test", 0, 0)
    assert x.shape == (100, length)
    assert float(task.measure(oracle(x), target, mask)["score"]) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(("cls", "deviation"), [(Cycle, 0.005 / 0.77), (ModularArithmetic, 0.005 / 0.75)])
def test_who_does_not_look_scores_nothing(cls: type[LastOrEvery], deviation: float) -> None:
    task = cls(length=(3, 9))
    _, target, mask = task.sample(10_000, 1)
    zero = F.one_hot(torch.zeros_like(target), 5).float()
    assert abs(float(task.measure(zero, target, mask)["score"])) < 4 * deviation


@pytest.mark.parametrize(
    ("cls", "low", "many"),
    [(Parity, [0] * 10, [2] * 10), (Cycle, [0] * 6, [3] * 6), (ModularArithmetic, [0, 5, 0, 5, 0], [5, 3, 5, 3, 5])],
)
def test_tokens_are_uniform_and_independent(cls: type[LastOrEvery], low: list[int], many: list[int]) -> None:
    x = cls(length=(len(low), len(low))).sample(50 * int(np.prod(many)), 1)[0].numpy()
    assert chisquare(np.bincount(np.ravel_multi_index((x - low).T, many), minlength=np.prod(many))).pvalue > 1e-4


@pytest.mark.parametrize("labels", ["last", "every"])
def test_the_latest_bit_alone_scores_nothing(labels: str) -> None:
    task = Parity(labels=labels, length=(20, 40))
    x, target, mask = task.sample(4000, 1)
    score = float(task.measure(F.one_hot(x, 2).float(), target, mask)["score"])
    first = 0.0 if labels == "last" else 1 / 29  # the first bit is its own parity
    assert abs(score - first) < 4 / 4000**0.5


@pytest.mark.parametrize(("length", "zero"), [(1, 1 / 3), (2, 3 / 9), (3, 7 / 27), (500, 0.2)])
def test_half_is_trivial_in_parity_and_the_start_is_likelier_after_few_moves(length: int, zero: float) -> None:
    assert Cycle().at_length(length).baseline["accuracy"] == pytest.approx(zero)
    assert Parity().at_length(length).baseline == {"loss": pytest.approx(np.log(2)), "accuracy": 0.5, "score": 0.0}


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


@pytest.mark.parametrize("labels", ["last", "every"])
def test_the_answer_is_whether_the_first_bit_is_the_last(labels: str) -> None:
    x, target, mask = EvenPairs(labels=labels).sample(300, 1)
    for bits, answers, due in zip(x.tolist(), target.tolist(), mask.tolist(), strict=True):
        steps = [t for t, one in enumerate(due) if one]
        assert all(answers[t] == (bits[0] == bits[t]) for t in steps)
        assert labels == "every" or len(steps) == 1


def test_the_order_blind_answer_of_even_pairs() -> None:
    """The likelier answer by the number of ones, estimated from other sequences."""
    task = EvenPairs(length=(5, 5))
    (x, target, _), (other, true, _) = task.sample(200_000, 1), task.sample(100_000, 2)
    equal = torch.stack([target[:, 4][x.sum(1) == k].double().mean() for k in range(6)])
    found = ((equal > 0.5).long()[other.sum(1)] == true[:, 4]).double().mean().item()
    assert found == pytest.approx(task.order_blind["accuracy"], abs=0.005)
    assert EvenPairs(labels="every").order_blind == {}


def test_an_answer_that_no_token_decides_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"task\.length=\[1,1\]: the answer is the same for all tokens"):
        EvenPairs(length=(1, 1))
    with pytest.raises(ConfigError, match="the answer is the same"):
        EvenPairs(length=(3, 9), eval_lengths=[1, 5]).at_length(1)
