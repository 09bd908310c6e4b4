"""Noisy recall and selective copying against plain readings of their sequences."""

from collections import Counter
from itertools import combinations
from typing import Any

import pytest
import torch
from scipy.stats import chisquare
from torch.nn import functional as F

from orthobench.errors import ConfigError
from orthobench.tasks.drawn.noisy_recall import NoisyRecall
from orthobench.tasks.drawn.selective_copying import SelectiveCopying


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
    task = NoisyRecall(loss="all")
    x, target, mask = task.sample(20, 3)
    y = F.one_hot(torch.where(mask > 0, target, (target + 1) % 32), 32).float() * 9
    found = task.measure(y, target, mask)
    assert float(found["score"]) == pytest.approx(1)
    assert float(found["loss"]) > 5
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
