"""Records that fill a table: those of its rows as they are composed today, each of them once.

A record carries the digest of its settings, and of the plug-ins that it was made with. One that differs from what its
row and seed are today was made with other settings, because the table has been changed since, or with other code of a
plug-in: it is told and fills nothing.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from orthobench.config.settings import Settings
from orthobench.errors import ConfigError
from orthobench.recording.plugin_modules import plugin_modules
from orthobench.recording.sources import combined
from orthobench.study.records import records
from orthobench.study.records.records import DIGEST, Line
from orthobench.study.tables.composed import ComposedTable
from orthobench.study.tables.table import RATE, Table

SETTINGS, PLUGINS = "made with other settings", "made with plug-ins that have changed since"


@dataclass(frozen=True)
class Recorded:
    """The records of one table of one preset.

    Attributes:
        lines: those that fill it.
        stale: the others, each with the reason.
    """

    table: Table
    preset: str
    lines: tuple[Line, ...]
    stale: tuple[tuple[Line, str], ...]

    @property
    def notes(self) -> list[str]:
        """Sentences for the records that fill nothing."""
        beside = "" if self.preset == "full" else f" ({self.preset})"
        place = f"{self.table.name}{beside}"
        return [f"{place}, row {l.row}, seed {l.seed}, run {l.run_id}: stale: {why}" for l, why in self.stale]

    @property
    def lost(self) -> list[str]:
        """Sentences for the records of runs whose constrained matrix left its set."""
        return [f"Row {line.row}, seed {line.seed}: {line.lost}." for line in self.lines if line.lost is not None]

    @property
    def moved(self) -> list[str]:
        """Sentences for the records of runs that moved between devices or engines."""
        found = [line for line in self.lines if line.moved is not None]
        return [f"Row {line.row}, seed {line.seed} moved, and has no times: {line.moved}." for line in found]


def recorded(composed: ComposedTable, results: Path, further: Iterable[Line] = ()) -> Recorded:
    """The records of a table and `further` ones, those of today's settings and plug-ins apart from others.

    Raises:
        StorageError: two records are of one row and seed.
    """
    table, preset = composed.table, composed.preset
    lines = [line for line in (*records.read(results, table.name), *further) if line.preset == preset]
    records.refuse_twins(lines, records.path_of(results, table.name))
    reasons = [(line, _why_stale(line, composed)) for line in lines]
    stale = tuple((line, why) for line, why in reasons if why is not None)
    return Recorded(table, preset, tuple(line for line, why in reasons if why is None), stale)


def lines_of_like(composed: ComposedTable, results: Path, chosen: Collection[str] | None = None) -> list[Line]:
    """Lines that a table lacks, from the records of the one that it is like: of runs with the same settings.

    Of rows of a cell that are one run, such as rates that its model does not tell apart, the first one has it.

    Args:
        composed: the table.
        results: the folder of the records.
        chosen: the rows that are meant, or the cells whose rows they are, or cells in a case; None for all.
    """
    table, preset = composed.table, composed.preset
    if table.like is None:
        return []
    known = {line.run_id: line for line in records.read(results, table.like) if line.preset == preset}
    own = [line for line in records.read(results, table.name) if line.preset == preset]
    places, runs = {(line.row, line.seed) for line in own}, {(table.cell(line.row), line.run_id) for line in own}
    tuning = [seed for one in (table.tuning, table.search) if one is not None for seed in one.seeds]
    seeds = {line.seed for line in known.values()} & {*table.planned(preset), *tuning}
    bases = {line.row for line in known.values()}
    rows = [row for row in table.trained() if table.search is None or row in bases]  # a searched table has hundreds
    if chosen is not None:
        rows = [row for row in rows if not {row, row.rpartition(f"_{RATE}")[0], table.cell(row)}.isdisjoint(chosen)]
    found = []
    for row, seed in ((row, seed) for row in rows for seed in sorted(seeds)):
        settings = None if (row, seed) in places else _settings(composed, row, seed)
        line = None if settings is None else known.get(settings.run_id)
        if line is None or settings is None or why_other(line, settings) is not None:
            continue
        if (run := (table.cell(row), line.run_id)) not in runs:
            runs.add(run)
            found.append(Line(line.values | {"cell": row}))
    return found


def of_every_preset(table: Table, results: Path) -> list[Recorded]:
    """The records of a table in full and of each of its presets."""
    found = dict.fromkeys(line.preset for line in records.read(results, table.name))
    return [recorded(ComposedTable(table, preset), results) for preset in found]


def _why_stale(line: Line, composed: ComposedTable) -> str | None:
    """Why a record is not of what its row and seed are today, where there are such; None if it is."""
    settings = _settings(composed, line.row, line.seed)
    return SETTINGS if settings is None else why_other(line, settings)


def _settings(composed: ComposedTable, row: str, seed: int) -> Settings | None:
    """The settings of a row and seed today; None where there is no such row or preset, or it cannot be built."""
    try:
        return composed.settings(row, seed)
    except ConfigError:
        return None


def why_other(line: Line, settings: Settings) -> str | None:
    """Why a record is not of these settings, by its digest where it has one, and of their plug-ins; None if it is."""
    if settings.run_id != line.run_id or line.values.get(DIGEST) not in (None, settings.digest):
        return SETTINGS
    known = line.values.get("plugins")
    return PLUGINS if known and known != combined(plugin_modules(settings.parts)) else None
