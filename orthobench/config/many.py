"""Composing many runs that differ in values only: Hydra composes each choice of files once, values are put in here.

Hydra needs a tenth of a second for a run, which is a quarter of an hour for a sweep of ten thousand.
"""

import copy
from functools import lru_cache
from pathlib import Path
from typing import Any

from orthobench.config.check import ROOT, check
from orthobench.config.compose import Composed, compose
from orthobench.config.policy import check_values
from orthobench.config.settings import Settings
from orthobench.schema import coerce

ENVIRONMENT = ("data_root", "runs_root")


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
        """See `orthobench.config.check.settings`, which this equals.

        Raises:
            ConfigError: an unknown key, a wrong type or a value out of range.
        """
        parsed = [plain for plain in map(_parsed, job) if plain is not None]
        if len(parsed) < len(job):
            return check(compose(job, self.folders))
        seeds = [value for group, key, value in parsed if key == "seed" and not group]
        rest = tuple(word for word, (group, key, _) in zip(job, parsed, strict=True) if group or key != "seed")
        if not (len(seeds) == 1 and type(seeds[0]) is int):
            return self._composed(job, parsed)
        seed = coerce(seeds[0], ROOT["seed"], "seed")
        if rest not in self._seedless:
            self._seedless[rest] = self._composed(job, parsed)
        return self._seedless[rest].with_seed(seed)

    def _composed(self, job: list[str], parsed: list[Any]) -> Settings:
        groups = tuple(word for word, (group, _, _) in zip(job, parsed, strict=True) if group)
        if groups not in self._bases:
            self._bases[groups] = compose(groups, self.folders)
        base = self._bases[groups]
        if base.interpolated:
            return check(compose(job, self.folders))
        values, typed = copy.deepcopy(base.values), {key: value for group, key, value in parsed if not group}
        new = frozenset(key for key in typed if _get(base.values, key) is None)
        for key, value in typed.items():
            _set(values, key, value)
        check_values(typed)
        check_values(values)
        return check(Composed(values, base.choices, frozenset(typed), new))


@lru_cache(maxsize=1 << 16)
def _parsed(word: str) -> tuple[bool, str, Any] | None:
    """(whether it chooses a file, key, value) of an override; null where only Hydra knows what it does."""
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    from orthobench.config.files import GROUPS

    try:
        override = OverridesParser.create().parse_override(word)
    except HydraException:
        return None
    key, value = override.key_or_group, override.value()
    if key in GROUPS:
        return True, key, value
    if isinstance(value, str):  # a quoted string, for which Hydra has a class of its own
        value = str(value)
    if not isinstance(value, str | int | float | None) or "${" in str(value):
        return None
    return False, key, value


def _get(values: Any, key: str) -> Any:
    for part in key.split("."):
        values = values.get(part) if isinstance(values, dict) else None
    return values


def _set(values: dict[str, Any], key: str, value: Any) -> None:
    *path, last = key.split(".")
    for part in path:
        if not isinstance(values.get(part), dict):
            values[part] = {}
        values = values[part]
    values[last] = value
