"""A searched table from its records: does a cell learn the case, how fast, and how far does it hold it?

Each cell is searched alike (trials.py), and its chosen trial is run on the table's own seeds (searched_cell.py).
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from pathlib import Path

from orthobench.common.schema import refuse_unknown
from orthobench.errors import ConfigError
from orthobench.study.costs import step_costs
from orthobench.study.costs.step_costs import StepCost
from orthobench.study.records import records
from orthobench.study.records.made_by import MadeBy, made_by
from orthobench.study.records.recorded import recorded
from orthobench.study.records.records import Line
from orthobench.study.tables import metrics
from orthobench.study.tables.composed import ComposedTable
from orthobench.study.tables.search import TRIAL, TrialRows
from orthobench.study.tables.table import FULL, SEARCHED, Table
from orthobench.study.verdicts.damaged import refuse_damaged_search
from orthobench.study.verdicts.searched_cell import SearchedCell, in_order
from orthobench.study.verdicts.trials import state
from orthobench.tasks.metric import Metric


@dataclass(frozen=True)
class SearchedTable:
    """Searched table of one preset.

    Attributes:
        cells: in the table's order; those of `--config-dir` last.
        lines: all runs that fill it.
        notes: one sentence for each record that fills nothing, or whose constrained matrix left its set.
        beside: the complete cells of the table that this one is like, in the order of `known`; empty for most.
        order_blind: the normalised score, in the range of training, of a predictor that knows how often each token was
            shown and not in which order; None where it is not known.
    """

    table: Table
    preset: str
    score: Metric
    cells: tuple[SearchedCell, ...]
    lines: tuple[Line, ...]
    lengths: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    made_by: MadeBy = MadeBy({}, {})  # noqa: RUF009  (it is frozen)
    beside: tuple[SearchedCell, ...] = ()
    order_blind: float | None = None

    @cached_property
    def known(self) -> list[SearchedCell]:
        """The cells of which something is recorded, see `in_order`."""
        return [cell for _, cell in in_order(cell for cell in self.cells if cell.recorded)]

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds that are reported."""
        return self.table.planned(self.preset)

    @cached_property
    def cap(self) -> float:
        """The greatest number of steps of a run; infinite where epochs end it."""
        most = ComposedTable(self.table, self.preset).settings(next(iter(self.table.rows))).trainer["max_steps"]
        return most if most > 0 else inf

    def due(self, names: Collection[str]) -> dict[str, dict[str, tuple[int, ...]]]:
        """The seeds that are to be run next, by row of these cells, by cell in the table's order."""
        found = {cell.name: cell.due() for cell in self.cells if cell.name in names}
        return {
            name: {f"{name}_{TRIAL}{trial}": seeds for trial, seeds in due.items()}
            for name, due in found.items()
            if due
        }

    def later(self, names: Collection[str]) -> int:
        """Count the runs of these cells that follow at the most when those that are due have been made."""
        search = self.table.search
        assert search is not None
        most = sum(stage.trials * len(stage.seeds) for stage in search.stages) + len(self.seeds)
        chosen = [cell for cell in self.cells if cell.name in names and not cell.complete]
        return sum(most - cell.recorded - sum(map(len, cell.due().values())) for cell in chosen)


def joined(table: Table, names: Iterable[str] | None) -> Table:
    """A searched table with models that it has no row for, which are found by their names.

    Raises:
        ConfigError: a name is neither a row nor a model.
    """
    assert isinstance(table.rows, TrialRows)
    known = table.files.options("model")
    further = [name for name in dict.fromkeys(names or ()) if name not in table.rows.cells]
    refuse_unknown(further, [*table.rows.cells, *known], "", f" is neither a row of {table.name} nor a model")
    return table.within(table.files, {name: (f"model={name}",) for name in further})


def cells_of(table: Table) -> tuple[str, ...]:
    """The names of the cells of a searched table."""
    assert isinstance(table.rows, TrialRows)
    return tuple(table.rows.cells)


def searched_table(table: Table, results: Path, preset: str = FULL, further: Sequence[Line] = ()) -> SearchedTable:
    """A searched table from its records and `further` ones; models in `--config-dir` that have records join it.

    Raises:
        ConfigError: its score is no test score, or one of which neither side is better.
        StorageError: the records are damaged.
    """
    lines = [*records.read(results, table.name), *further]
    models = set(table.files.options("model"))
    others = dict.fromkeys(line.row.rpartition(f"_{TRIAL}")[0] for line in lines)
    table = joined(table, [name for name in others if name in models])
    first = next(iter(table.rows))
    score = metrics.metric_of(str(table.score), table, [first])
    if not score.name.startswith("test/") or score.direction == "neither":
        raise ConfigError(f"{table.name}: score={table.score} is not test/NAME of a metric with a good side: name one.")
    composed = ComposedTable(table, preset)
    found = recorded(composed, results, further)
    lengths = composed.lengths(first)[0] if found.lines else ()
    refuse_damaged_search(composed, found.lines, score, lengths, records.path_of(results, table.name))
    costs = _costs(composed, results)
    cells = tuple(
        replace(_cell(composed, name, found.lines, score, lengths), cost=costs.get(f"{name}_{TRIAL}0"))
        for name in cells_of(table)
    )
    notes = (*found.notes, *found.lost, *_diverged(cells))
    like = table.original if found.lines else None
    other = () if like is None else searched_table(like, results, preset).known
    beside, name = tuple(cell for cell in other if cell.complete), score.name.rpartition("/")[2]
    blind = composed.order_blind(first, name).get(None) if found.lines else None
    blind = None if blind is None else score.normalised(blind, composed.baseline(first, name))
    made = made_by(found.lines)
    return SearchedTable(table, preset, score, cells, found.lines, lengths, notes, made, beside, blind)


def _costs(composed: ComposedTable, results: Path) -> dict[str, StepCost]:
    """The measured steps of the cells' first trials, of the table that this one is like where it has none itself."""
    measured = step_costs.read(results)
    own, _ = step_costs.current(composed, measured)
    first = {f"{name}_{TRIAL}0" for name in cells_of(composed.table)}
    return step_costs.of_like(composed, measured, first - own.keys()) | own


def _diverged(cells: Iterable[SearchedCell]) -> list[str]:
    told = "reported seeds diverged, and count as the worst."
    return [f"{cell.name}: {cell.diverged} of {len(cell.lines)} {told}" for cell in cells if cell.diverged]


def _cell(
    composed: ComposedTable, name: str, lines: Sequence[Line], score: Metric, lengths: tuple[int, ...]
) -> SearchedCell:
    table, search = composed.table, composed.table.search
    assert search is not None
    assert isinstance(table.rows, TrialRows)
    places = table.rows.places
    own = [line for line in lines if places[line.row][0] == name]
    trials: dict[int, tuple[Line, ...]] = {}
    for line in (line for line in own if line.seed in search.seeds):
        trial = places[line.row][1]
        trials[trial] = (*trials.get(trial, ()), line)
    place = {seed: i for i, seed in enumerate(search.seeds)}
    ordered = {trial: tuple(sorted(found, key=lambda line: place[line.seed])) for trial, found in trials.items()}
    current = state(search, ordered)
    reported = table.planned(composed.preset)
    chosen = [line for line in own if line.seed in reported and places[line.row][1] == current.chosen]
    row = f"{name}_{TRIAL}{current.chosen}"
    words = table.rows[row][len(table.rows.cells[name]) :] if current.chosen is not None else ()
    budget = composed.budget(f"{name}_{TRIAL}0") if own else {}
    return SearchedCell(name, ordered, current, tuple(chosen), reported, score, lengths, words, budget)


def searched_tables(tables: Iterable[Table], results: Path) -> list[SearchedTable]:
    """Every searched table of which something is recorded."""
    begun = (one for one in tables if one.track == SEARCHED and records.path_of(results, one.name).is_file())
    return [made for one in begun if (made := searched_table(one, results)).lines]
