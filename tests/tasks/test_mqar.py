"""MQAR, noisy recall and selective copying against plain readings of their sequences."""

from collections import Counter
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from torch import Tensor
from torch.nn import functional as F

from orthobench.errors import ConfigError
from orthobench.tasks.drawn.mqar import MQAR
from orthobench.tasks.drawn.noisy_recall import NoisyRecall
from orthobench.tasks.drawn.selective_copying import SelectiveCopying


def read(task: MQAR, tokens: list[int]) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """The writes (key, value) and the questions (step, key) of a sequence."""
    writes, asked, t = [], [], 0
    while t < len(tokens):
        token, after = tokens[t], tokens[t + 1] if t + 1 < len(tokens) else 0
        if 0 < token <= task.keys and task.keys < after <= task.keys + task.values:
            assert not asked, "all is written before anything is asked"
            writes.append((token, after - 1 - task.keys))
        elif 0 < token <= task.keys:
            asked.append((t, token))
        t += 2
    return writes, asked


@pytest.mark.parametrize(
    "options",
    [
        {}, {"pairs": (2, 20)}, {"updates": 3, "pairs": (3, 6)}, {"filler": "random"}, {"repeat_values": False},
        {"gap": "power", "length": 256}, {"updates": 4, "filler": "random", "gap": "power"},
    ],
    ids=str,
)  # fmt: skip
def test_a_dictionary_answers_every_question(options: dict[str, Any]) -> None:
    task = MQAR(**options)
    x, target, mask = task.sample(200, 1)
    for tokens, answers, due in zip(x.tolist(), target.tolist(), mask.tolist(), strict=True):
        writes, asked = read(task, tokens)
        known = dict(writes)
        assert task.span[0] <= len(known) <= task.span[1]
        assert len(writes) == len(known) + task.updates
        assert sorted(key for _, key in asked) == sorted(known)
        assert [t for t, one in enumerate(due) if one] == [t for t, _ in asked]
        assert all(answers[t] == known[key] for t, key in asked)
        first = dict(reversed(writes))
        assert sum(first[key] != known[key] for key in known) == task.updates
        if not task.repeat_values:
            assert len(set(known.values())) == len(known)
        assert not any(tokens[int(task.steps(np.array(len(known)))) :])


@pytest.mark.parametrize("options", [{}, {"pairs": (2, 20), "keys": 25}, {"updates": 2, "filler": "random"}], ids=str)
def test_a_key_of_two_tokens(options: dict[str, Any]) -> None:
    """A dictionary of pairs of tokens; the value is due at the second token of a question."""
    task = MQAR(compositional=True, **options)
    s = task.root
    x, target, mask = task.sample(200, 1)
    for tokens, answers, due in zip(x.tolist(), target.tolist(), mask.tolist(), strict=True):
        known, t = {}, 0
        while 0 < tokens[t] <= s and 2 * s < tokens[t + 2] <= 2 * s + task.values:
            assert s < tokens[t + 1] <= 2 * s
            known[tokens[t], tokens[t + 1]] = tokens[t + 2] - 1 - 2 * s
            t += 3
        assert task.span[0] <= len(known) == t // 3 - task.updates
        steps = [i for i, one in enumerate(due) if one]
        asked = {(tokens[i - 1], tokens[i]): answers[i] for i in steps}
        assert asked == known
        assert len(steps) == len(known)
        assert min(steps) > t


def test_the_numbers_of_the_paper() -> None:
    """64 steps with 4 pairs; all keys, values and slots are as common."""
    task = MQAR(keys=8, values=8)
    x, _, mask = task.sample(20_000, 2)
    assert task.length == 64
    keys, values = Counter(x[:, 0:8:2].flatten().tolist()), Counter(x[:, 1:8:2].flatten().tolist())
    slots = mask.sum(0)[8::2]
    for counts in (list(keys.values()), list(values.values()), slots.tolist()):
        assert chisquare(counts).pvalue > 1e-4
    assert slots.shape == (28,)


def test_a_power_law_asks_soon() -> None:
    """Of one pair, slot i is drawn with a probability that grows as i^(a - 1)."""
    task = MQAR(pairs=(1, 1), gap="power", gap_power=0.01, length=64)
    slots = task.sample(50_000, 3)[2].sum(0)[2::2].numpy()
    wanted = np.arange(1, 32) ** (0.01 - 1)
    assert chisquare(slots, wanted / wanted.sum() * slots.sum()).pvalue > 1e-4


@pytest.mark.parametrize("repeat", [True, False])
def test_the_order_blind_answer(repeat: bool) -> None:
    task = MQAR(pairs=(2, 6), values=8, repeat_values=repeat)
    x, target, mask = task.sample(20_000, 4)
    y = torch.zeros(*x.shape, 8)
    for row, tokens in enumerate(x.tolist()):
        y[row, :, Counter(value for _, value in read(task, tokens)[0]).most_common(1)[0][0]] = 1
    found = task.measure(y, target, mask)
    assert float(found["score"]) == pytest.approx(task.order_blind["score"], abs=0.01)


def test_other_loads_are_tested() -> None:
    task = MQAR(pairs=(2, 16), eval_lengths=(32,))
    at = task.at_length(32)
    x, target, mask = at.batch("test", 0, 0)
    assert x.shape[1] == 192
    assert mask.sum(1).unique().tolist() == [32]
    assert float(at.measure(right(target, 64), target, mask)["score"]) == pytest.approx(1)


def right(target: Tensor, classes: int) -> Tensor:
    return F.one_hot(target, classes).float()


@pytest.mark.parametrize(
    "options",
    [
        {"pairs": (4, 65)}, {"length": 12}, {"length": 65}, {"updates": 5}, {"values": 3, "repeat_values": False},
        {"keys": 60, "compositional": True}, {"keys": 100, "pairs": (80, 80), "compositional": True},
    ],
    ids=str,
)  # fmt: skip
def test_what_does_not_fit_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="task"):
        MQAR(**options)


@pytest.mark.parametrize("options", [{}, {"noise": 0.9, "length": (4, 12)}, {"loss": "all", "noise": 0.0}], ids=str)
def test_a_dictionary_recalls(options: dict[str, Any]) -> None:
    task = NoisyRecall(**options)
    x, target, mask = task.sample(300, 1)
    for tokens, answers, due in zip(x.tolist(), target.tolist(), mask.tolist(), strict=True):
        known: dict[int, int] = {}
        asked = 0
        for t in range(0, len(tokens), 2):
            key, value = tokens[t : t + 2]
            if key >= task.keys or not any(tokens[t:]):
                assert not due[t]
                continue
            assert task.keys <= value < task.keys + task.values
            assert bool(due[t]) == (key in known)
            if due[t]:
                asked += 1
                assert answers[t] == (value if task.every else value - task.keys)
                assert known[key] == value
            known[key] = value
        assert asked
        assert not any(due[1::2])
        if task.every:
            assert answers[:-1] == tokens[1:]


def test_the_shares_of_noisy_recall() -> None:
    task = NoisyRecall(noise=0.3, length=(128, 128))
    x = task.sample(2_000, 2)[0]
    first = x[:, ::2]
    noisy = first >= 16
    assert noisy.double().mean().item() == pytest.approx(0.3, abs=0.005)
    assert chisquare(torch.bincount(first[~noisy]).tolist()).pvalue > 1e-4
    assert chisquare(torch.bincount(first[noisy] - 16).tolist()).pvalue > 1e-4
    assert chisquare(torch.bincount(x[:, 1::2][noisy] - 16).tolist()).pvalue > 1e-4


def test_next_token_loss_is_over_all_steps_and_scores_over_the_asked_ones() -> None:
    with pytest.raises(ConfigError, match="would ask for tokens of padding"):
        NoisyRecall(loss="all", length=(16, 64))
    task = NoisyRecall(loss="all")
    x, target, mask = task.sample(20, 3)
    y = F.one_hot(torch.where(mask > 0, target, (target + 1) % 32), 32).float() * 9
    found = task.measure(y, target, mask)
    assert float(found["score"]) == pytest.approx(1)
    assert float(found["loss"]) > 5
    y[:, -1] = -y[:, -1]
    assert float(task.measure(y, target, mask)["loss"]) == float(found["loss"]), "the last step has no next token"
    assert y.shape == (*x.shape, task.output_size)


@pytest.mark.parametrize(
    "options", [{}, {"length": (9, 30)}, {"items": 16, "symbols": 14, "length": (256, 256)}], ids=str
)
def test_what_is_due_are_the_symbols_in_their_order(options: dict[str, Any]) -> None:
    task = SelectiveCopying(**options)
    x, target, mask = task.sample(300, 1)
    for tokens, answers, due in zip(x.tolist(), target.tolist(), mask.tolist(), strict=True):
        copy = tokens.index(task.symbols + 1)
        told = [token - 1 for token in tokens[:copy] if token]
        assert len(told) == task.items
        assert not any(tokens[copy + 1 :])
        assert [t for t, one in enumerate(due) if one] == list(range(copy + 1, copy + 1 + task.items))
        assert answers[copy + 1 : copy + 1 + task.items] == told
        assert task.span[0] <= copy + 1 + task.items <= task.span[1]


def test_every_placement_is_as_common() -> None:
    task = SelectiveCopying(items=2, symbols=3, length=(9, 9))
    x = task.sample(20_000, 2)[0][:, :6]
    found = Counter(tuple(row.nonzero()[:, 0].tolist()) for row in x)
    assert set(found) == set(combinations(range(6), 2))
    assert chisquare(list(found.values())).pvalue > 1e-4


def test_the_order_blind_answer_of_selective_copying() -> None:
    task = SelectiveCopying(items=6, symbols=4)
    x, target, mask = task.sample(20_000, 3)
    y = torch.zeros(*x.shape, 4)
    for row, tokens in enumerate(x.tolist()):
        y[row, :, Counter(token - 1 for token in tokens if 0 < token <= 4).most_common(1)[0][0]] = 1
    assert float(task.measure(y, target, mask)["score"]) == pytest.approx(task.order_blind["score"], abs=0.01)


@pytest.mark.parametrize(
    ("cls", "options"),
    [(NoisyRecall, {"length": (5, 6)}), (NoisyRecall, {"length": (2, 2)}), (SelectiveCopying, {"length": (8, 64)})],
)
def test_lengths_without_room_are_refused(cls: type, options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"task\.length"):
        cls(**options)
