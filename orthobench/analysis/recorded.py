"""Which records fill a table: those of its rows as they are composed today, each of them once.

A record carries the digest of its settings. One that differs from what its row and seed are today was made with other
settings, because the table has been changed since: it is told and fills nothing.
"""

from dataclasses import dataclass
from pathlib import Path

from orthobench.analysis import records
from orthobench.analysis.composed import ComposedTable
from orthobench.analysis.records import DIGEST, Line
from orthobench.config.settings import Settings
from orthobench.config.table import Table
from orthobench.errors import ConfigError

STALE = "stale: made with other settings"


@dataclass(frozen=True)
class Recorded:
    """The records of one table of one preset.

    Attributes:
        lines: those that fill it.
        stale: those that were made with other settings.
    """

    table: Table
    preset: str
    lines: tuple[Line, ...]
    stale: tuple[Line, ...]

    @property
    def notes(self) -> list[str]:
        """One sentence for each record that was made with other settings."""
        beside = "" if self.preset == "full" else f" ({self.preset})"
        place = f"{self.table.name}{beside}"
        return [f"{place}, row {line.row}, seed {line.seed}, run {line.run_id}: {STALE}" for line in self.stale]


def recorded(composed: ComposedTable, results: Path) -> Recorded:
    """The records of a table, those of today's settings apart from others.

    Raises:
        StorageError: two records are of one row and seed.
    """
    table, preset = composed.table, composed.preset
    lines = [line for line in records.read(results, table.name) if line.preset == preset]
    records.refuse_twins(lines, records.path_of(results, table.name))
    current = [line for line in lines if _is_current(line, composed)]
    return Recorded(table, preset, tuple(current), tuple(line for line in lines if line not in current))


def alike(composed: ComposedTable, results: Path) -> list[Line]:
    """Lines that a table lacks, from the records of the one that it is like: of runs with the same settings."""
    table, preset = composed.table, composed.preset
    if table.like is None:
        return []
    known = {line.run_id: line for line in records.read(results, table.like) if line.preset == preset}
    own = {(line.row, line.seed) for line in records.read(results, table.name) if line.preset == preset}
    tuning = () if table.tuning is None else table.tuning.seeds
    seeds = {line.seed for line in known.values()} & {*table.planned(preset), *tuning}
    found = []
    for row, seed in ((row, seed) for row in table.trained() for seed in sorted(seeds)):
        settings = None if (row, seed) in own else _settings(composed, row, seed)
        line = None if settings is None else known.get(settings.run_id)
        if line is not None and settings is not None and is_of(line, settings):
            found.append(Line(line.values | {"cell": row}))
    return found


def everything(table: Table, results: Path) -> list[Recorded]:
    """The records of a table in full and of each of its presets."""
    found = dict.fromkeys(line.preset for line in records.read(results, table.name))
    return [recorded(ComposedTable(table, preset), results) for preset in found]


def _is_current(line: Line, composed: ComposedTable) -> bool:
    """Whether a record is of what its row and seed are today; not where there is no such row or preset."""
    settings = _settings(composed, line.row, line.seed)
    return settings is not None and is_of(line, settings)


def _settings(composed: ComposedTable, row: str, seed: int) -> Settings | None:
    """The settings of a row and seed today; null where there is no such row or preset, or it cannot be built."""
    try:
        return composed.settings(row, seed)
    except ConfigError:
        return None


def is_of(line: Line, settings: Settings) -> bool:
    """Whether a record was made with these settings, by its whole digest where it has one."""
    return settings.run_id == line.run_id and line.values.get(DIGEST) in (None, settings.digest)
