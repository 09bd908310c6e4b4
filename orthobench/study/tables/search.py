"""The search of a fair table: how many trials of each cell are made, and on which seeds.

A model's file says what is searched, see `searched.py`; a table says how much is tried. Trial i of a cell is point i of
a scrambled Sobol sequence in its ranges, so that all trials are known before anything is run.

search:
  sobol: 2026                         # the seed of the sequence
  stages:                             # the trials of a stage are the best of the one before
    - {trials: 12, seeds: [101]}
    - {trials: 6, seeds: [102, 103]}
  overrides: ["task.eval_lengths=[]"] # of the runs that search, which beat the table's
  settings:                           # searched in place of what the models' files say
    lr: log(3e-4,1e-1)
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from orthobench.common.schema import NonNegative, Positive, coerce, refuse_unknown
from orthobench.config.files import Files
from orthobench.config.ranges import SearchRange
from orthobench.config.searched import LR, RATIO, key_of, ranges
from orthobench.config.words import key, value
from orthobench.errors import ConfigError

TRIAL = "trial"
KEYS: dict[str, Any] = {"sobol": NonNegative, "stages": list[Any], "overrides": list[str], "settings": dict}
STAGE = {"trials": Positive, "seeds": list[int]}


@dataclass(frozen=True)
class Stage:
    """Stage of a search: so many trials, the best of the stage before, are run on these seeds."""

    trials: int
    seeds: tuple[int, ...]


@dataclass(frozen=True)
class CellSearch:
    """Search of the cells of a table; see the top of this file.

    Attributes:
        settings: ranges by setting in place of what the models' files say; empty for those.
    """

    stages: tuple[Stage, ...]
    sobol: int
    overrides: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, given: dict[str, Any], seeds: Iterable[int], place: str) -> "CellSearch":
        """`search:` of a table, checked.

        Args:
            given: its content.
            seeds: the table's own seeds.
            place: where it is, for messages.

        Raises:
            ConfigError: a key or a value is wrong, or a seed of the search is one of those reported.
        """
        refuse_unknown(given, KEYS, f"{place}.", " is not a key here")
        missing = [name for name in ("sobol", "stages") if name not in given]
        if missing:
            raise ConfigError(f"{place}: {', '.join(missing)} is missing: add it.")
        body = {name: coerce(one, KEYS[name], f"{place}.{name}") for name, one in given.items()}
        stages = tuple(_stage(one, f"{place}.stages[{i}]") for i, one in enumerate(body["stages"]))
        own = [seed for stage in stages for seed in stage.seeds]
        twice = sorted({seed for seed in own if seed in tuple(seeds) or own.count(seed) > 1})
        if twice or not stages:
            raise ConfigError(f"{place}.stages: seed {twice} is used twice, or there is no stage; take fresh seeds.")
        trials = [stage.trials for stage in stages]
        if trials != sorted(trials, reverse=True):
            raise ConfigError(f"{place}.stages: trials={trials} must not grow from stage to stage.")
        settings = body.get("settings", {})
        ranges(settings, f"{place}.settings")
        return cls(stages, body["sobol"], tuple(body.get("overrides", ())), tuple(settings.items()))

    @property
    def trials(self) -> int:
        """Number of trials of a cell."""
        return self.stages[0].trials

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of all stages."""
        return tuple(seed for stage in self.stages for seed in stage.seeds)


def _stage(given: Any, place: str) -> Stage:
    if not isinstance(given, dict) or given.keys() != STAGE.keys():
        raise ConfigError(f"{place}: trials and seeds are needed, such as {{trials: 12, seeds: [101]}}.")
    body = {name: coerce(one, STAGE[name], f"{place}.{name}") for name, one in given.items()}
    if not body["seeds"]:
        raise ConfigError(f"{place}.seeds is empty: give one or more.")
    return Stage(body["trials"], tuple(body["seeds"]))


class TrialRows(Mapping[str, tuple[str, ...]]):
    """The rows of a table that searches, `gru_trial0`: the overrides of every trial of every cell.

    The names are known at once, the values when they are asked for: SciPy takes a second to import.

    Args:
        cells: the overrides of every cell.
        search: the table's.
        files: where models are found.
    """

    def __init__(self, cells: Mapping[str, tuple[str, ...]], search: CellSearch, files: Files) -> None:
        self.cells, self.search, self.files = dict(cells), search, files
        self.places = {f"{cell}_{TRIAL}{trial}": (cell, trial) for cell in self.cells for trial in range(search.trials)}

    def __getitem__(self, name: str) -> tuple[str, ...]:
        cell, trial = self.places[name]
        words = self.cells[cell]
        return (*words, *_words(self._ranges(words), self.search.sobol, trial, self.search.trials))

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)

    def __contains__(self, name: object) -> bool:
        return name in self.places

    def _ranges(self, words: tuple[str, ...]) -> tuple[tuple[str, SearchRange], ...]:
        """Return what is searched of a cell: what its row sets itself is not."""
        chosen = {key(word): value(word) for word in words}
        found = dict(self.search.settings) or self.files.searched(chosen["model"])
        return tuple((name, one) for name, one in ranges(found, "search").items() if key_of(name) not in chosen)


@lru_cache(maxsize=8192)
def _words(found: tuple[tuple[str, SearchRange], ...], sobol: int, trial: int, trials: int) -> tuple[str, ...]:
    """The overrides of one trial; a rate of constrained matrices has four significant digits, as all numbers have."""
    point = Point(tuple(name for name, _ in found), _points(len(found), trials, sobol)[trial]) if found else None
    words = {name: one.word(replace(point, key=name)) for name, one in found if point is not None}
    if RATIO in words:
        rate = float(value(words[LR])) * float(value(words[RATIO])) if LR in words else float("nan")
        if math.isnan(rate):
            raise ConfigError("search: ratio is a share of lr, which is not searched: give lr a range, too.")
        words[RATIO] = f"{key_of(RATIO)}={float(f'{rate:.4g}')!r}"
    return tuple(words.values())


@dataclass(frozen=True)
class Point:
    """A point of the unit cube as what suggests the values of a trial, one coordinate for each setting."""

    names: tuple[str, ...]
    u: tuple[float, ...]
    key: str = ""

    def suggest_float(self, name: str, low: float, high: float, *, log: bool = False) -> float:
        """The number at the coordinate of the setting."""
        u = self.u[self.names.index(self.key)]
        return low * (high / low) ** u if log else low + u * (high - low)

    def suggest_int(self, name: str, low: int, high: int, *, log: bool = False) -> int:
        """The whole number there; all have an equal share of the coordinate, or of its logarithm."""
        return min(math.floor(self.suggest_float(name, low, high + 1, log=log)), high)

    def suggest_categorical(self, name: str, choices: Any) -> Any:
        """The choice there."""
        return choices[min(int(self.u[self.names.index(self.key)] * len(choices)), len(choices) - 1)]


@lru_cache(maxsize=64)
def _points(dimensions: int, count: int, seed: int) -> list[tuple[float, ...]]:
    """The first points of the scrambled Sobol sequence (Owen 1998), of 2^m that are drawn together."""
    from scipy.stats import qmc

    points = qmc.Sobol(dimensions, scramble=True, rng=seed).random_base2(max(count - 1, 1).bit_length())
    return [tuple(map(float, point)) for point in points[:count]]
