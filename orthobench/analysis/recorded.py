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


def everything(table: Table, results: Path) -> list[Recorded]:
    """The records of a table in full and of each of its presets."""
    found = dict.fromkeys(line.preset for line in records.read(results, table.name))
    return [recorded(ComposedTable(table, preset), results) for preset in found]


def _is_current(line: Line, composed: ComposedTable) -> bool:
    """Whether a record is of what its row and seed are today; not where there is no such row or preset."""
    try:
        settings = composed.settings(line.row, line.seed)
    except ConfigError:
        return False
    return is_of(line, settings)


def is_of(line: Line, settings: Settings) -> bool:
    """Whether a record was made with these settings, by its whole digest where it has one."""
    return settings.run_id == line.run_id and line.values.get(DIGEST) in (None, settings.digest)
