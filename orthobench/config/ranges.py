"""Ranges to try: `optimizer.lr=log(1e-4,1e-1)`, `model.rho=int(0,95)`, `model.gate_bias=float(0,2)`, `T={9,99}`."""

import math
import re
from dataclasses import dataclass
from typing import Any, Protocol

from orthobench.config.settings import OF_TRAINING
from orthobench.config.words import key
from orthobench.errors import ConfigError

NUMBERS = re.compile(r"(log|int|float)\(\s*([^,()]+?)\s*,\s*([^,()]+?)\s*(,\s*log\s*)?\)")
CHOICES = re.compile(r"\{(.*)\}")
BEGINS = re.compile(r"\s*(\{|\w+\()")
HELP = "use log(1e-4,1e-1), float(0,1), int(1,95), int(8,256,log) or {a,b,c}"
DIGITS = 4


class Suggesting(Protocol):
    """Requests that a trial of Optuna's answers."""

    def suggest_float(self, name: str, low: float, high: float, *, log: bool = False) -> float: ...
    def suggest_int(self, name: str, low: int, high: int, *, log: bool = False) -> int: ...
    def suggest_categorical(self, name: str, choices: Any) -> Any: ...


@dataclass(frozen=True)
class SearchRange:
    """The values that one setting may have.

    Attributes:
        key: the setting.
        text: the range as it was written.
        choices: its values where they are listed; empty for a range of numbers.
        low: the least number.
        high: the greatest number.
        whole: whether only whole numbers are tried.
        log: whether they are tried by their ratios.
    """

    key: str
    text: str
    choices: tuple[str, ...] = ()
    low: float = 0.0
    high: float = 0.0
    whole: bool = False
    log: bool = False

    @property
    def ends(self) -> tuple[str, ...]:
        """The words of the least and the greatest value, or of every choice."""
        values = self.choices or tuple(map(self._text, (self.low, self.high)))
        return tuple(f"{self.key}={value}" for value in values)

    def word(self, trial: Suggesting) -> str:
        """The override with the value that a trial tries; a number has four significant digits."""
        if self.choices:
            return f"{self.key}={trial.suggest_categorical(self.key, self.choices)}"
        if self.whole:
            return f"{self.key}={trial.suggest_int(self.key, int(self.low), int(self.high), log=self.log)}"
        value = trial.suggest_float(self.key, self.low, self.high, log=self.log)
        return f"{self.key}={self._text(min(max(float(f'{value:.{DIGITS}g}'), self.low), self.high))}"

    def has(self, value: Any) -> bool:
        """Return True if a trial may have tried this value."""
        if self.choices:
            return value in self.choices
        kind = int if self.whole else int | float
        return isinstance(value, kind) and not isinstance(value, bool) and self.low <= value <= self.high

    def _text(self, value: float) -> str:
        return str(int(value)) if self.whole else repr(value)


def is_range(word: str) -> bool:
    """Return True if an override gives a range in place of a value."""
    return BEGINS.match(word.partition("=")[2]) is not None


def parse(word: str) -> SearchRange:
    """The range in an override.

    Raises:
        ConfigError: it is none, it is empty, or the seed or what the task asks would be chosen.
    """
    name, text = key(word), word.partition("=")[2].strip()
    if name == "seed":
        raise ConfigError(f"{word}: the seed is no setting to tune; the lucky one says nothing, so leave it fixed.")
    if name in ("T", "task") or (name.startswith("task.") and name.removeprefix("task.") not in OF_TRAINING):
        raise ConfigError(
            f"{word}: {name} says what the task asks, and the best value of it is the easiest one: leave it fixed."
        )
    if listed := CHOICES.fullmatch(text):
        choices = tuple(part.strip() for part in _split(listed[1]))
        if len(set(choices)) < max(2, len(choices)) or "" in choices:
            raise ConfigError(f"{word}: two or more different choices are needed, such as {name}={{a,b}}.")
        return SearchRange(name, text, choices)
    found = NUMBERS.fullmatch(text)
    if found is None:
        raise ConfigError(f"{word} is no range: {HELP}.")
    kind, log = found[1], found[1] == "log" or found[4] is not None
    low, high = (_number(found[place], word) for place in (2, 3))
    whole = kind == "int"
    if not low < high:
        raise ConfigError(f"{word}: the first number must be below the second.")
    if whole and not (low.is_integer() and high.is_integer()):
        raise ConfigError(f"{word}: int needs whole numbers, float(...) takes others.")
    if log and low <= 0:
        raise ConfigError(f"{word}: numbers that are tried by their ratios must be above 0.")
    return SearchRange(name, text, low=low, high=high, whole=whole, log=log)


def _split(text: str) -> list[str]:
    """The parts between commas that are in no brackets: `[c,r],[c]` has two."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "[(") - (letter in "])")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _number(text: str, word: str) -> float:
    try:
        value = float(text)
    except ValueError as error:
        raise ConfigError(f"{word}: {text} is no number; {HELP}.") from error
    if not math.isfinite(value):
        raise ConfigError(f"{word}: {text} is no finite number: give one.")
    return value
