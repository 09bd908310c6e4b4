"""Rows and seeds of a selected table that come next: all of a published one, of another one by what is recorded."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from orthobench.common.schema import refuse_unknown
from orthobench.errors import ConfigError
from orthobench.study.records.recorded import lines_of_like
from orthobench.study.records.records import Line
from orthobench.study.reproduce.selection import Selection
from orthobench.study.tables.composed import ComposedTable
from orthobench.study.tables.table import PUBLISHED
from orthobench.study.verdicts import fair_claims, searched_claims
from orthobench.study.verdicts.fair import fair_table, rates
from orthobench.study.verdicts.fair_entry import names
from orthobench.study.verdicts.searched import SearchedTable, cells_of, joined, searched_table


@dataclass(frozen=True)
class DueRows:
    """Rows of a table that come next.

    Attributes:
        seeds: the seeds to run, by row.
        recorded: how many runs of a fair or a searched table are recorded.
        later: how many follow when these are done; of a searched table at the most.
        searched: the searched table that says so; None for another one.
    """

    seeds: dict[str, tuple[int, ...]]
    recorded: int = 0
    later: int = 0
    searched: SearchedTable | None = None


@dataclass(frozen=True)
class SelectedTable:
    """Table with what is selected of it.

    Attributes:
        composed: the table, whose rows have the further words of the selection; models that are named have joined it.
        results: the folder of its records.
        rows, seeds: some of them; None for those of the table.
    """

    composed: ComposedTable
    results: Path
    rows: Iterable[str] | None
    seeds: Iterable[int] | None

    def due(self) -> DueRows:
        """The rows that come next.

        Raises:
            ConfigError: no such row or preset, seeds of a table that has its own, or a claim that nothing can decide.
        """
        table, preset = self.composed.table, self.composed.preset
        if table.track == PUBLISHED:
            own = tuple(table.planned(preset) if self.seeds is None else self.seeds)
            return DueRows(dict.fromkeys(table.trained(self.rows), own))
        if self.seeds is not None:
            what = "its tuning" if table.search is None else "its search"
            raise ConfigError(
                f"{table.name} is a {table.track} table: its seeds and those of {what} are in its file, "
                "so leave --seeds out."
            )
        (searched_claims if table.search else fair_claims).check_claims(table)
        return self._of_fair() if table.search is None else self._of_searched()

    @cached_property
    def of_like(self) -> list[Line]:
        """Lines that it lacks, from the records of the table that it is like; see `lines_of_like`."""
        return lines_of_like(self.composed, self.results, None if self.rows is None else tuple(self.rows))

    def _of_searched(self) -> DueRows:
        table, known = self.composed.table, cells_of(self.composed.table)
        refuse_unknown(self.rows or (), known, "cell=", f" is no cell of {table.name}")
        chosen = tuple(known if self.rows is None else self.rows)
        searched = searched_table(table, self.results, self.composed.preset, self.of_like)
        seeds = {row: own for due in searched.due(chosen).values() for row, own in due.items()}
        recorded = sum(cell.recorded for cell in searched.cells if cell.name in chosen)
        return DueRows(seeds, recorded, searched.later(chosen), searched)

    def _of_fair(self) -> DueRows:
        table = self.composed.table
        models = dict.fromkeys(variant.base for variant in table.variants.values())
        cells = [*models, *(name for entry in rates(table) for name in sorted(names(*entry)) if name not in models)]
        refuse_unknown(self.rows or (), cells, "cell=", f" is no model of {table.name}")
        chosen = tuple(models if self.rows is None else self.rows)
        fair = fair_table(table, self.results, self.composed.preset, chosen, self.of_like)
        entries = [entry for entry in fair.entries if not entry.names.isdisjoint(chosen)]
        recorded = sum(len(lines) for entry in entries for lines in (*entry.tuned.values(), entry.lines))
        later = sum(len(fair.seeds) for entry in entries if entry.choice.missing)
        return DueRows(fair.due(chosen), recorded, later)


def selected_tables(asked: Selection) -> Iterator[SelectedTable]:
    """The tables of a selection, each with what is selected of it.

    Raises:
        ConfigError: a name is neither a row of a searched table nor a model.
    """
    rows = asked.rows if asked.models is None else asked.models
    for table in asked.tables:
        table = joined(table, asked.models) if table.search else table
        yield SelectedTable(ComposedTable(table, asked.preset, asked.extra), asked.results, rows, asked.seeds)
