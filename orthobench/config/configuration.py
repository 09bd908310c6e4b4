"""From words to checked settings: each choice of files is composed once, and this file puts in the values.

Hydra needs a tenth of a second for each run, which would be a quarter of an hour for a sweep of ten thousand.
"""

import copy
import os
import re
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from orthobench.common import paths
from orthobench.common.schema import PositiveFloat, coerce
from orthobench.config import places, plain
from orthobench.config.check import ROOT, check
from orthobench.config.compose import Composed, Word, compose, get, parse
from orthobench.config.files import GROUPS, Files
from orthobench.config.policy import ENVIRONMENT, check_values
from orthobench.config.settings import Settings
from orthobench.config.words import DEEPEST, LARGEST
from orthobench.config.words import parsed as in_grammar
from orthobench.errors import ConfigError

WHOLE = r"-?(?:0|[1-9][0-9]{0,17})"
PLAIN_WORD = re.compile(
    rf"\+{{0,2}}(?P<key>[A-Za-z_]\w*(?:[./][A-Za-z_]\w*)*)=(?P<value>(?P<whole>{WHOLE})"
    rf"|\[(?P<list>{WHOLE}(?:,{WHOLE})*)\]"
    r"|-?[0-9]{1,18}(?:\.[0-9]{1,18}(?:e[-+]?[0-9]{1,3})?|e[-+]?[0-9]{1,3})|(?P<name>[A-Za-z_][\w./-]*))",
    re.ASCII,
)
RATE, RECURRENT_RATE = "optimizer.lr", "optimizer.lr_recurrent"
FREE = {"seed": ROOT["seed"], RATE: PositiveFloat, RECURRENT_RATE: PositiveFloat}  # nothing else follows from these
NAMED = {"true": True, "false": False, "null": None}


class Configuration(Files):
    """Configuration that the files make of words."""

    def expand(self, words: Iterable[str]) -> list[str]:
        """The words with every path expanded.

        Raises:
            ConfigError: a path names a variable that is not set, or a user that is not there.
        """
        return places.given(words)

    def parse(self, words: Iterable[str]) -> list[Word]:
        """The words as Hydra takes them.

        Raises:
            ConfigError: see `compose.parse`.
        """
        return parse(self.expand(words), self)

    def compose(self, words: Iterable[str]) -> Composed:
        """The configuration of one run.

        Raises:
            ConfigError: see `compose.compose`.
        """
        return compose(self.expand(words), self)

    def settings(self, words: Iterable[str]) -> Settings:
        """The checked settings of one run; what was composed is used again for later runs while no file has changed.

        Raises:
            ConfigError: a key is unknown, or a value has the wrong type or is out of range, wherever it was written.
        """
        return self.composer().settings(self.expand(words))

    def composer(self) -> "Composer":
        """Composer of runs from the files as they are now; the one before while none has changed."""
        surroundings = (os.path.abspath("."), os.environ.get("HOME"), *map(paths.variable, ENVIRONMENT))  # noqa: PTH100
        return _composer(self.folders, self.state(), surroundings)


class Composer:
    """Turns the words of a run into its checked settings.

    Args:
        files: the configuration files.
    """

    def __init__(self, files: Files) -> None:
        self.files = files
        self._bases: dict[tuple[str, ...], Composed] = {}
        self._alike: dict[Any, Settings] = {}  # by the words without the values of FREE

    def settings(self, job: list[str]) -> Settings:
        """The checked settings of one run, the same as composing and checking its words alone would give.

        Raises:
            ConfigError: a key is unknown, or a value has the wrong type or is out of range.
        """
        parsed = [plain for plain in map(_parsed, job) if plain is not None]
        if len(parsed) < len(job):
            return check(compose(job, self.files))
        base = self._base(tuple(word for word, (group, _, _) in zip(job, parsed, strict=True) if group))
        if base.interpolated:
            return check(compose(job, self.files))
        free = {key: value for group, key, value in parsed if key in FREE and not group}
        if type(free.get("seed")) is not int or not all(type(value) in (int, float) for value in free.values()):
            return _put_into(base, parsed)
        fixed = tuple(word for word, (group, key, _) in zip(job, parsed, strict=True) if group or key not in FREE)
        name = (fixed, tuple(free))
        if name not in self._alike:
            found = self._alike[name] = _put_into(base, parsed)
            return found
        given = {key: coerce(value, FREE[key], key) for key, value in free.items()}
        return _with(self._alike[name], given, base)

    def depends(self, job: list[str]) -> bool:
        """Return True if more than the seed itself may differ in a run of another seed, as where a value
        refers to it.
        """
        parsed = [plain for plain in map(_parsed, job) if plain is not None]
        groups = tuple(word for word, (group, _, _) in zip(job, parsed, strict=False) if group)
        return len(parsed) < len(job) or self._base(groups).interpolated

    def _base(self, groups: tuple[str, ...]) -> Composed:
        if groups not in self._bases:
            found = None if self.files.folders else _plain(groups)
            self._bases[groups] = compose(groups, self.files) if found is None else found
        return self._bases[groups]


def _plain(groups: tuple[str, ...]) -> Composed | None:
    """A choice of files put together without Hydra; None where only Hydra can do it, or refuses it."""
    chosen = {key: value for _, key, value in filter(None, map(_parsed, groups))}
    if len(chosen) < len(groups) or not all(isinstance(value, str) for value in chosen.values()):
        return None
    found = plain.composed(chosen)
    return None if found is None else Composed(*found, frozenset(), frozenset())


def _with(found: Settings, given: dict[str, Any], base: Composed) -> Settings:
    """Checked settings with another seed and other rates, which nothing else follows from."""
    optimizer = dict(found.optimizer)
    if RATE in given:
        optimizer["lr"] = given[RATE]
        if "lr_recurrent" in optimizer and base.values["optimizer"].get("lr_recurrent") is None:
            optimizer["lr_recurrent"] = given[RATE]
    if RECURRENT_RATE in given and "lr_recurrent" in optimizer:
        optimizer["lr_recurrent"] = given[RECURRENT_RATE]
    return replace(found.with_seed(given["seed"]), optimizer=optimizer)


def _put_into(base: Composed, parsed: list[Any]) -> Settings:
    """The checked settings of what was composed, no value of which refers to another, with the values of words."""
    values, typed = copy.deepcopy(base.values), {key: value for group, key, value in parsed if not group}
    new = frozenset(key for key in typed if get(base.values, key) is None)
    for key, value in typed.items():
        _set(values, key, copy.copy(value))
    check_values(typed)
    check_values(values)
    return check(Composed(values, base.choices, frozenset(typed), new, foreign=base.foreign))


@lru_cache(maxsize=1)
def _composer(folders: tuple[Path, ...], files: frozenset[Any], surroundings: tuple[str | None, ...]) -> Composer:
    """The composer for one state of the configuration files, and of all by which a path means a place."""
    return Composer(Files(folders))


@lru_cache(maxsize=1 << 16)
def _parsed(word: str) -> tuple[bool, str, Any] | None:
    """(whether it chooses a file, key, value) of an override; None for grammar that only Hydra can interpret."""
    if (found := _plain_word(word)) is not None:
        return found
    try:
        override = in_grammar(word)
    except ConfigError:
        return None
    key, value = override.key_or_group, override.value()
    if not key or override.is_delete() or override.package is not None or key.startswith("hydra"):
        return None
    if key in GROUPS:
        return True, key, value
    if isinstance(value, str):  # a quoted string, for which Hydra has a class of its own
        value = str(value)
    plain = isinstance(value, str | int | float | None) or (
        isinstance(value, list) and all(type(item) in (int, float, str) for item in value)
    )
    if not plain or "${" in str(value):
        return None
    return False, key, value


def _plain_word(word: str) -> tuple[bool, str, Any] | None:
    """The same of a word whose value is a number, a list of whole ones, true, false, null or a name.

    Null for a word that Hydra must parse.
    """
    found = PLAIN_WORD.fullmatch(word) if len(word) <= LARGEST else None
    if found is None or found["key"].startswith("hydra") or found["key"].count(".") > DEEPEST:
        return None
    key, text = found["key"], found["value"]
    if found["list"] is not None:
        return key in GROUPS, key, [int(number) for number in found["list"].split(",")]
    if found["name"] is not None:
        if text not in NAMED and text.lower() in (*NAMED, "nan", "inf"):
            return None
        return key in GROUPS, key, NAMED.get(text, text)
    return key in GROUPS, key, int(text) if found["whole"] is not None else float(text)


def _set(values: dict[str, Any], key: str, value: Any) -> None:
    *path, last = key.split(".")
    for part in path:
        if not isinstance(values.get(part), dict):
            values[part] = {}
        values = values[part]
    values[last] = value
