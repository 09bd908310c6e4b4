"""Checking the settings returns what it resolved: nothing is looked up or made a second time."""

from collections import Counter
from functools import wraps
from typing import Any

import pytest

import orthobench
from orthobench.common import registry
from orthobench.errors import ConfigError
from orthobench.study.catalogue import SHIPPED
from orthobench.tasks.base import Task


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[Any]:
    """How often each class was looked up, by kind and name, and how many tasks were made, as `tasks`."""
    found: Counter[Any] = Counter()
    find, made = registry.find, Task.__init__

    def count_find(kind: str, name: str, key: str) -> type:
        found[kind, name] += 1
        return find(kind, name, key)

    @wraps(made)
    def count_task(self: Task, *args: Any, **kwargs: Any) -> None:
        found["tasks"] += 1
        made(self, *args, **kwargs)

    monkeypatch.setattr(registry, "find", count_find)
    monkeypatch.setattr(Task, "__init__", count_task)
    return found


@pytest.mark.parametrize(
    ("words", "cell"),
    [
        (("model=scornn", "task=copying", "T=20"), "elman"),
        (("model=ncgru", "task=adding", "T=20", "model.orthogonal=[c,r]"), "gru"),
        (("model=lstm", "task=adding", "T=20", "model.layers=3"), "lstm"),
        (("model=spectral_mlp", "task=mnist_flat"), None),
    ],
    ids=lambda words: words if isinstance(words, str) else None,
)
@pytest.mark.parametrize("budget", [(), ("params=30000",)], ids=["plain", "params"])
def test_a_build_finds_each_class_once_and_makes_one_task(
    words: tuple[str, ...], cell: str | None, budget: tuple[str, ...], counted: Counter[Any]
) -> None:
    exp = orthobench.build(*words, *budget)
    assert exp.model is not None
    assert exp.duration.steps
    assert counted.pop("tasks") == 1
    assert set(counted.values()) == {1}
    assert {kind for kind, _ in counted} == {"task", "network", "parametrization", "optimizer", "schedule"} | (
        {"cell"} if cell else set()
    )


def test_a_second_rule_is_found_too(counted: Counter[Any]) -> None:
    orthobench.build("model=scornn", "task=copying", "T=20", "optimizer=adam", "optimizer.recurrent=rmsprop_tf")
    assert counted["optimizer", "adam"] == counted["optimizer", "rmsprop_tf"] == 1


def test_another_seed_has_a_task_of_its_own() -> None:
    first = orthobench.build("model=rnn", "task=adding", "T=20", "seed=1")
    second = type(first)(first.settings.with_seed(2))
    assert (first.task.seed, second.task.seed) == (1, 2)
    assert first.task.sample(2, 0)[0].equal(second.task.sample(2, 0)[0])
    assert not first.task.batch("train", 0, 0)[0].equal(second.task.batch("train", 0, 0)[0])


def test_a_variant_where_there_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="variant=code does not apply to task=parity with model=gru: neither has"):
        SHIPPED.settings(["model=gru", "task=parity", "variant=code"])
    assert SHIPPED.settings(["model=gru", "task=adding", "recipe=none", "variant=code"]).task["variant"] == "code"
