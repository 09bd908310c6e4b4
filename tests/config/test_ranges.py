"""Ranges of settings: what is tried, and what is refused."""

from typing import Any

import pytest

from orthobench.config.ranges import is_range, parse
from orthobench.errors import ConfigError


class Drawn:
    """A trial that notes what it is asked for, and answers with the same value every time."""

    def __init__(self, value: Any) -> None:
        self.value, self.asked = value, dict[str, Any]()

    def suggest_float(self, name: str, low: float, high: float, *, log: bool = False) -> float:
        self.asked = {"kind": "float", "low": low, "high": high, "log": log}
        return self.value

    def suggest_int(self, name: str, low: int, high: int, *, log: bool = False) -> int:
        self.asked = {"kind": "int", "low": low, "high": high, "log": log}
        return self.value

    def suggest_categorical(self, name: str, choices: Any) -> Any:
        self.asked = {"kind": "choice", "choices": choices}
        return self.value


@pytest.mark.parametrize(
    ("text", "asked", "value", "word", "ends"),
    [
        ("log(1e-4,1e-1)", ("float", 1e-4, 0.1, True), 0.00123456, "k=0.001235", ("k=0.0001", "k=0.1")),
        ("float(0, 2)", ("float", 0.0, 2.0, False), 1.99999, "k=2.0", ("k=0.0", "k=2.0")),
        ("float(0,1.99995)", ("float", 0.0, 1.99995, False), 1.99994, "k=1.99995", ("k=0.0", "k=1.99995")),
        ("int(0,95)", ("int", 0, 95, False), 7, "k=7", ("k=0", "k=95")),
        ("int(8, 256, log)", ("int", 8, 256, True), 16, "k=16", ("k=8", "k=256")),
    ],
)
def test_numbers(text: str, asked: tuple[Any, ...], value: Any, word: str, ends: tuple[str, ...]) -> None:
    found, trial = parse(f"k={text}"), Drawn(value)
    assert is_range(f"k={text}")
    assert found.word(trial) == word, "never beyond the ends, though rounded"
    assert tuple(trial.asked.values()) == asked
    assert found.ends == ends


def test_choices_may_be_lists() -> None:
    found, trial = parse("model.orthogonal={[c,r],[c], [c,r,u]}"), Drawn("[c]")
    assert found.choices == ("[c,r]", "[c]", "[c,r,u]")
    assert found.word(trial) == "model.orthogonal=[c]"
    assert found.ends[0] == "model.orthogonal=[c,r]"


@pytest.mark.parametrize("word", ["lr=1e-3", "T=20", "task.path=a.csv", "model.orthogonal=[c]", "seed=1,2", "lr="])
def test_other_words_are_no_ranges(word: str) -> None:
    assert not is_range(word)


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("lr=log(1,0.1)", "below the second"),
        ("lr=log(0,1)", "above 0"),
        ("lr=log(-1,1)", "above 0"),
        ("lr=log(a,1)", "a is no number"),
        ("lr=log(nan,1)", "nan is no finite number"),
        ("lr=log(1)", "is no range"),
        ("lr=uniform(0,1)", "is no range"),
        ("lr=int(0.5,3)", "whole numbers"),
        ("lr={1}", "two or more"),
        ("lr={1,1}", "two or more different"),
        ("lr={1,}", "two or more"),
        ("seed=int(1,9)", "the seed is no setting to tune"),
        ("T=int(5,30)", "T says what the task asks, and the best value of it is the easiest one"),
        ("task.test_size=int(10,100)", "task.test_size says what the task asks"),
    ],
)
def test_what_is_refused(word: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        parse(word)
