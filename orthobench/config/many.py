"""From words to checked settings: Hydra composes each choice of files once, and this file puts in the values.

Hydra needs a tenth of a second for each run, which would be a quarter of an hour for a sweep of ten thousand.
"""

import copy
import os
from functools import lru_cache
from pathlib import Path
from typing import Any

from orthobench import paths
from orthobench.config.check import ROOT, check
from orthobench.config.compose import Composed, compose, get
from orthobench.config.files import state
from orthobench.config.policy import ENVIRONMENT, check_values
from orthobench.config.settings import Settings
from orthobench.config.table import expand
from orthobench.config.words import parsed as in_grammar
from orthobench.errors import ConfigError
from orthobench.schema import coerce


def settings(words: list[str] | tuple[str, ...], folders: tuple[Path, ...] = ()) -> Settings:
    """The checked settings of one run; what was composed is used again for later runs while no file has changed.

    Raises:
        ConfigError: a key is unknown, or a value has the wrong type or is out of range, wherever it was written.
    """
    return composer(folders).settings(expand(words, folders))


def composer(folders: tuple[Path, ...] = ()) -> "Composer":
    """What composes runs from the files as they are now; the one before while none has changed."""
    surroundings = (os.path.abspath("."), os.environ.get("HOME"), *map(paths.variable, ENVIRONMENT))  # noqa: PTH100
    return _composer(folders, state(folders), surroundings)


class Composer:
    """Turns the words of a run into its checked settings.

    Args:
        folders: further configuration folders.
    """

    def __init__(self, folders: tuple[Path, ...] = ()) -> None:
        self.folders = folders
        self._bases: dict[tuple[str, ...], Composed] = {}
        self._seedless: dict[tuple[str, ...], Settings] = {}

    def settings(self, job: list[str]) -> Settings:
        """The checked settings of one run, the same as composing and checking its words alone would give.

        Raises:
            ConfigError: a key is unknown, or a value has the wrong type or is out of range.
        """
        parsed = [plain for plain in map(_parsed, job) if plain is not None]
        if len(parsed) < len(job):
            return check(compose(job, self.folders))
        seeds = [value for group, key, value in parsed if key == "seed" and not group]
        rest = tuple(word for word, (group, key, _) in zip(job, parsed, strict=True) if group or key != "seed")
        base = self._base(tuple(word for word, (group, _, _) in zip(job, parsed, strict=True) if group))
        if base.interpolated:
            return check(compose(job, self.folders))
        if not (len(seeds) == 1 and type(seeds[0]) is int):
            return _put_into(base, parsed)
        seed = coerce(seeds[0], ROOT["seed"], "seed")
        if rest not in self._seedless:
            composed = _put_into(base, parsed)
            self._seedless[rest] = composed.with_seed(seed)
            return composed
        return self._seedless[rest].with_seed(seed)

    def _base(self, groups: tuple[str, ...]) -> Composed:
        if groups not in self._bases:
            self._bases[groups] = compose(groups, self.folders)
        return self._bases[groups]


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
    return Composer(folders)


@lru_cache(maxsize=1 << 16)
def _parsed(word: str) -> tuple[bool, str, Any] | None:
    """(whether it chooses a file, key, value) of an override; null for grammar that only Hydra can interpret."""
    from orthobench.config.files import GROUPS

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


def _set(values: dict[str, Any], key: str, value: Any) -> None:
    *path, last = key.split(".")
    for part in path:
        if not isinstance(values.get(part), dict):
            values[part] = {}
        values = values[part]
    values[last] = value
