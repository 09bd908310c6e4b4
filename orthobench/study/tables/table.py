"""A table or figure as runs: conf/experiment/<paper>/<table>.yaml, which is data and not composed by Hydra.

description: Table 1, pixel MNIST       one line for `orthobench list`; `cite:` gives BibTeX keys
like: fair/adding                      a table with all that this one does not say itself, see `parts.like`
only: [gru, lstm]                      the cells that a table which is `like:` another keeps, where not all
track: published                       the paper's settings and selection; `fair`, `searched`: equal budgets
seeds: [1, 2, 3]
margin: {test/accuracy: 0.005}         how far a mean may be from the published number, see statistics/status.py
common: [task=mnist, T=784]            overrides of every row
cells: {lstm: [model=lstm], ...}       the rows: overrides of each, which beat the common ones
grid: {T: {50: [T=50], ...}, ...}      every row once for each combination, as `lstm_T50`
tuning: {seeds: [...], lr: [...]}      the rates that a fair table tries, see tuning.py
search: {stages: [...], sobol: 2026}   the trials that a searched table makes of every cell, see search.py
factors: {gru: {bias: [a, b], ...}}    a design whose cells are `gru_a`, `gru_b`, ..., see verdicts/factorial.py
claims: [{claim: ..., test: ...}]      what a fair or a searched table is to show, see claim.py
rates: [1e-3, 3e-3, 1e-2]              tried where the paper states none, see verdicts/rates.py
title: HAR-2                           its title, where that is not `Table 1` or the name of the file
score: test/accuracy                   the metric by which a fair table ranks models; published rows name their own
figures:                               the figures that are drawn from its runs, see `Figure`
  - {title: Figure 1, curve: [val/loss], cells: [_200]}
presets:                               shortened runs, for tables of their own; they beat both
  smoke: {seeds: 1, overrides: [trainer.max_steps=2]}
deviations: [...]                      footnotes: where the runs differ from the paper's
needs: the licensed corpus             data that the runs need and not everyone has
unstated: [rate]                       settings that the paper leaves out; or by row, {lstm: [rate], ...}
held_out: false                        the validation set is the test set, so nothing may be selected on it
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal

from orthobench.common.schema import coerce, refuse_unknown
from orthobench.config import about
from orthobench.config.configuration import Configuration
from orthobench.config.files import Files, own_folder, version
from orthobench.config.places import placed_words
from orthobench.config.words import key, value
from orthobench.config.yaml_file import read_yaml
from orthobench.errors import ConfigError
from orthobench.study.tables import parts
from orthobench.study.tables.claim import StatedClaim, claim_of
from orthobench.study.tables.figure import Figure
from orthobench.study.tables.parts import GridPlace, Preset
from orthobench.study.tables.search import TRIAL, CellSearch, TrialRows
from orthobench.study.tables.tuning import Tuning

KEYS: dict[str, Any] = {
    **about.KEYS,
    "like": str,
    "only": list[str],
    "track": Literal["published", "fair", "searched"],
    "seeds": list[int],
    "margin": dict,
    "common": list[str],
    "cells": dict,
    "grid": dict,
    "tuning": dict,
    "search": dict,
    "claims": list,
    "factors": dict,
    "rates": list[Any],
    "score": str,
    "title": str,
    "figures": list,
    "presets": dict,
    "deviations": list[str],
    "needs": str | None,
    "held_out": bool,
    "unstated": Any,
}
REQUIRED = ("track", "seeds", "margin", "cells", "presets")
PRESETS = ("short", "smoke")
FULL = "full"
PUBLISHED, FAIR, SEARCHED = "published", "fair", "searched"
RATE = "lr"
DEFAULTS = {"model": "scornn", "task": "copying"}  # those of conf/config.yaml


@dataclass(frozen=True)
class TableRun:
    """Run of one row of a table.

    Attributes:
        table: `<paper>/<table>`.
        preset: `full`, or the name of a shortened version.
        overrides: all overrides of the run, the seed last.
    """

    table: str
    row: str
    seed: int
    preset: str
    overrides: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """Table or figure; see the top of this file.

    Attributes:
        rows: overrides by row (`cells:` in the file), those of a grid's combinations by `<row>_<axis><place>`.
        variants: the place in the grid of every row; empty without a grid.
        tuning: how the rates of a fair table are tuned; its rows are then of every rate that may ever be tried.
        search: how the cells of a searched table are searched; its rows are then of every trial.
        claims: what it is to show.
        factors: the levels of every factor, by the beginning of the cells' names.
        rates: those that each row of a published table is trained with, as `<row>_lr<rate>`; mostly none.
        given_title: `title:` of its file.
        like: the name of the table that it is like, but for what it says itself; None for most.
        original: that table.
        unstated: by row, the settings that the paper leaves out and on which its numbers depend.
        files: the configuration files that it is from.
    """

    name: str
    track: str
    seeds: tuple[int, ...]
    margin: dict[str, float]
    common: tuple[str, ...]
    rows: Mapping[str, tuple[str, ...]]
    variants: dict[str, GridPlace]
    score: str | None
    figures: tuple[Figure, ...]
    presets: dict[str, Preset]
    deviations: tuple[str, ...]
    needs: str | None
    held_out: bool
    tuning: Tuning | None = None
    search: CellSearch | None = None
    claims: tuple[StatedClaim, ...] = ()
    factors: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    rates: tuple[str, ...] = ()
    given_title: str | None = None
    like: str | None = None
    original: "Table | None" = None
    unstated: dict[str, tuple[str, ...]] = field(default_factory=dict)
    files: Configuration = field(default_factory=Configuration)

    @property
    def paper(self) -> str:
        """Name of the paper."""
        return self.name.split("/")[0]

    @property
    def title(self) -> str:
        """Its title: the file's `title:`, or a name such as `Table 1` or `Adding` for `table1` or `adding`."""
        word = self.name.split("/")[1]
        kind = word.rstrip("0123456789")
        return self.given_title or f"{kind.capitalize()} {word.removeprefix(kind)}".strip()

    @property
    def notes(self) -> tuple[str, ...]:
        """Differences of the runs from the paper's: the table's deviations, then those of its rows' recipes."""
        found: dict[str, list[str]] = {}
        for row in self.rows:
            given = self.chosen(row)
            name = given.get("recipe", f"{given['model']}/{given['task']}")
            variant, deviations = self.files.recipe(name)
            if variant in (None, given.get("variant", variant)):  # with the other variant it is not a deviation
                for note in deviations:
                    found.setdefault(note, []).append(name)
        return (*self.deviations, *(f"{', '.join(dict.fromkeys(names))}: {note}" for note, names in found.items()))

    def planned(self, preset: str = FULL) -> tuple[int, ...]:
        """The seeds of a preset, or of the full table.

        Raises:
            ConfigError: there is no such preset.
        """
        refuse_unknown([preset], [FULL, *self.presets], "preset ", " is not known")
        return self.seeds if preset == FULL else self.seeds[: self.presets[preset].seeds]

    def row(self, name: str) -> tuple[str, ...]:
        """The overrides of a row, the common ones first.

        Raises:
            ConfigError: there is no such row.
        """
        base, _, rate = name.rpartition(f"_{RATE}")
        if name not in self.rows and (base not in self.rows or rate not in self.rates):
            own = [row for row, place in self.variants.items() if place.base == name]
            if own:
                raise ConfigError(f"cell={name} is {len(own)} rows of {self.name}; name one, such as cell={own[0]}.")
            refuse_unknown([name], self.trained(), "cell=", f" is not in {self.name}")
        if name in self.rows:
            return self.common + self.rows[name]
        return (*self.common, *self.rows[base], f"optimizer.lr={rate}")

    def within(self, files: Configuration, cells: Mapping[str, tuple[str, ...]] | None = None) -> "Table":
        """The table among these configuration files, and one that searches with further cells."""
        if self.search is None or not isinstance(self.rows, TrialRows):
            return replace(self, files=files)
        rows = TrialRows(self.rows.cells | dict(cells or {}), self.search, files)
        return replace(self, files=files, rows=rows, variants=_trials(rows))

    def trained(self, rows: Iterable[str] | None = None) -> list[str]:
        """The names of what is trained for these rows, or for all: each with each of the rates, where there are any."""
        names = list(self.rows if rows is None else rows)
        if not self.rates:
            return names
        several = {row: [f"{row}_{RATE}{rate}" for rate in self.rates] for row in names if row in self.rows}
        return [one for name in names for one in several.get(name, [name])]

    def base(self, name: str) -> str:
        """The row that something is trained for."""
        return name if name in self.rows else name.rpartition(f"_{RATE}")[0]

    def cell(self, name: str) -> str:
        """Name by which `orthobench reproduce` is asked for a row: its own, or that of the cell it is a trial of."""
        return self.variants[name].base if self.track != PUBLISHED and name in self.variants else self.base(name)

    def chosen(self, name: str) -> dict[str, str]:
        """The values that a row sets, by key; its model and task are always among them.

        Raises:
            ConfigError: there is no such row.
        """
        return DEFAULTS | {key(word): value(word) for word in self.row(name)}

    @cached_property
    def tasks(self) -> tuple[str, ...]:
        """The tasks of its rows, each once."""
        named = ([word for word in self.row(row) if key(word) == "task"] for row in self.rows)
        return tuple(dict.fromkeys(value(words[-1]) if words else DEFAULTS["task"] for words in named))

    def runs(
        self, preset: str = FULL, seeds: Iterable[int] | None = None, rows: Iterable[str] | None = None
    ) -> list[TableRun]:
        """Every row with every seed, seeds first.

        Raises:
            ConfigError: there is no such preset or row, or a seed occurs twice.
        """
        planned = self.planned(preset)
        extra = () if preset == FULL else self.presets[preset].overrides
        chosen = list(planned if seeds is None else seeds)
        parts.check_seeds(chosen, self.name)
        searching = {seed: self.search.overrides for seed in self.search.seeds} if self.search else {}
        return [
            TableRun(self.name, row, seed, preset, (*self.row(row), *searching.get(seed, ()), *extra, f"seed={seed}"))
            for row in (self.trained() if rows is None else rows)
            for seed in chosen
        ]


def load(name: str, files: Configuration) -> Table:
    """Load a table.

    Raises:
        ConfigError: the table is not known, or its file breaks the schema.
    """
    path = _path(name, files, "")
    content = read_yaml(path)
    like = content.get("like") if isinstance(content, dict) else None
    other = None if like is None else _path(str(like), files, f"experiment {name}: like: ")
    versions = tuple(version(one) for one in (path, other) if one is not None)
    found = _read(path, name, other, versions).within(files)
    return found if like is None else replace(found, original=load(str(like), files))


def _path(name: str, files: Files, place: str) -> Path:
    known = files.options("experiment")
    refuse_unknown([name], known, f"{place}experiment=", " is not known")
    first, *others = files.paths("experiment", name)
    if others:
        raise ConfigError(f"{place}{others[0]} has the name of {first}; give it another one, and `like: {name}`.")
    return first


@lru_cache(maxsize=1024)
def _read(path: Path, name: str, like: Path | None, versions: tuple[tuple[int, ...], ...]) -> Table:
    """The table in a file; it is kept while its file and the one that it is like have the same `versions`."""
    content, place = read_yaml(path), f"experiment {name}: "
    if like is not None:
        content = parts.like(
            parts.checked(content, KEYS, (), place),
            parts.checked(read_yaml(like), KEYS, (), f"experiment {content['like']}: "),
            place,
        )
    given = parts.checked(content, KEYS, REQUIRED, place)
    for cell, words in given["cells"].items():
        parts.check_words(words, f"{place}cells.{cell}")
    if (given["track"] == FAIR) != ("tuning" in given) or (given["track"] == FAIR and not given.get("score")):
        raise ConfigError(f"{place}a fair table needs tuning: and score:, and no other table has tuning:.")
    if given["track"] == FAIR and "rates" in given:
        raise ConfigError(f"{place}rates: are those of a published table; a fair table needs tuning: in their place.")
    parts.check_search(given, place)
    tuning = Tuning.of(given["tuning"], given["seeds"], f"{place}tuning") if "tuning" in given else None
    search = CellSearch.of(given["search"], given["seeds"], f"{place}search") if "search" in given else None
    for cell, words in given["cells"].items() if tuning or search else ():
        parts.refuse_unfair(words, f"{place}cells.{cell}")
        if not any(key(word) == "model" for word in (*given.get("common", ()), *words)):
            raise ConfigError(f"{place}cells.{cell} names no model=, and would have the default one: add model=NAME.")
    parts.check_seeds(given["seeds"], name)
    grid = given.get("grid", {}) | ({RATE: tuning.choices} if tuning else {})
    parts.refuse_endless(len(given["cells"]), grid, given, place)
    rows, variants = parts.crossed(given["cells"], grid, f"{place}grid")
    if search:
        rows = TrialRows(rows, search, Files())
        variants = _trials(rows)
    parts.check_words(given.get("common", []), f"{place}common")
    made = Table(
        name=name,
        track=given["track"],
        seeds=tuple(given["seeds"]),
        margin={metric: coerce(value, float, f"{place}margin.{metric}") for metric, value in given["margin"].items()},
        common=tuple(given.get("common", ())),
        rows=rows,
        variants=variants,
        score=given.get("score"),
        figures=tuple(parts.figure(body, f"{place}figures: ") for body in given.get("figures", ())),
        presets=parts.presets(given["presets"], PRESETS, place),
        deviations=tuple(given.get("deviations", ())),
        needs=given.get("needs"),
        held_out=given.get("held_out", True),
        tuning=tuning,
        search=search,
        factors=parts.factors(given.get("factors", {}), given["cells"], f"{place}factors"),
        claims=tuple(claim_of(one, f"{place}claims[{i}]") for i, one in enumerate(given.get("claims", ()))),
        rates=parts.rates(given, rows, place),
        given_title=given.get("title"),
        like=given.get("like"),
        unstated=parts.unstated(given.get("unstated", []), rows, f"{place}unstated"),
    )
    files = [(path, name), *([(like, given["like"])] if like else [])]
    return _placed(made, [folder for file in files if (folder := own_folder(*file)) is not None], place)


def _placed(table: Table, folders: list[Path], place: str) -> Table:
    """The table with the paths in its overrides as those in its own folders, see `places.placed`.

    Raises:
        ConfigError: a path is outside of these folders.
    """
    if not folders:
        return table
    presets = {
        name: Preset(one.seeds, placed_words(one.overrides, folders, place)) for name, one in table.presets.items()
    }
    found = replace(table, common=placed_words(table.common, folders, place), presets=presets)
    written = table.rows.cells if isinstance(table.rows, TrialRows) else table.rows
    rows = {name: placed_words(words, folders, place) for name, words in written.items()}
    return found.within(found.files, rows) if isinstance(table.rows, TrialRows) else replace(found, rows=rows)


def _trials(rows: TrialRows) -> dict[str, GridPlace]:
    return {name: GridPlace(cell, {TRIAL: str(trial)}) for name, (cell, trial) in rows.places.items()}
