"""A searched table from its records: does a cell learn the case, how fast, and how far does it hold it?

Each cell is searched alike (trials.py), and its chosen trial is run on the table's own seeds. A run has solved the case
once the validation score has been at the table's threshold for some validations in a row (`stopping.hold`). How many
seeds solve it is a share with its exact interval (Clopper & Pearson 1934); the steps until solved are a median that
knows of runs that were ended before. Lengths beyond training are scored by the seeds that solved the case alone.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil, inf
from pathlib import Path
from statistics import median

from orthobench.common.schema import refuse_unknown
from orthobench.errors import ConfigError
from orthobench.study.costs import step_costs
from orthobench.study.costs.step_costs import StepCost
from orthobench.study.records import records
from orthobench.study.records.made_by import MadeBy, made_by
from orthobench.study.records.recorded import recorded
from orthobench.study.records.records import Line, at_length
from orthobench.study.statistics.statistics import share_interval
from orthobench.study.statistics.status import Interval
from orthobench.study.tables import metrics
from orthobench.study.tables.composed import ComposedTable
from orthobench.study.tables.search import TRIAL, TrialRows
from orthobench.study.tables.table import FULL, SEARCHED, Table
from orthobench.study.verdicts.damaged import refuse_damaged_search
from orthobench.study.verdicts.trials import SearchState, solved, state, steps
from orthobench.tasks.metric import Metric

HELD, MOST = 0.9, 0.9  # the score that holds a length, and the share of seeds that solves a case reliably
GROUPS = ("solved by nine tenths of the seeds", "solved by some", "solved by none", "did not learn", "search goes on")
UNSOLVED, UNLEARNT = GROUPS.index("solved by none"), GROUPS.index("did not learn")


@dataclass(frozen=True)
class SearchedCell:
    """Cell of a searched table.

    Attributes:
        name: the cell, such as `gru`.
        trials: the recorded runs of the search, by trial.
        state: what these say.
        lines: the runs of the table's own seeds with the chosen trial.
        seeds: the seeds of these that there are to be.
        words: the overrides of the chosen trial, without those that all trials have; empty while none is chosen.
        cost: its measured training step; None while it was not measured.
    """

    name: str
    trials: dict[int, tuple[Line, ...]]
    state: SearchState
    lines: tuple[Line, ...]
    seeds: tuple[int, ...]
    score: Metric
    lengths: tuple[int, ...] = ()
    words: tuple[str, ...] = ()
    budget: dict[str, int] = field(default_factory=dict)
    cost: StepCost | None = None

    @property
    def recorded(self) -> int:
        """Number of its runs that are recorded."""
        return sum(map(len, self.trials.values())) + len(self.lines)

    @property
    def complete(self) -> bool:
        """True when nothing of it is left to run."""
        return self.state.over and (self.state.chosen is None or len(self.lines) == len(self.seeds))

    @property
    def solved(self) -> tuple[int, int]:
        """Count of the reported seeds that solved the case, and of those recorded."""
        return sum(solved(line) is not None for line in self.lines), len(self.lines)

    @property
    def interval(self) -> Interval | None:
        """The exact 95 % interval of the share of seeds that solve the case; None while none is recorded."""
        return share_interval(*self.solved, method="exact") if self.lines else None

    @property
    def steps(self) -> tuple[float, float, float] | None:
        """The lower quartile, the median and the upper quartile of the steps until solved; infinite beyond the cap."""
        return quartiles([steps(line) for line in self.lines]) if self.lines else None

    @property
    def seconds(self) -> float | None:
        """Seconds to solve: the median steps times the time of a step; None where that is not measured."""
        return self.steps[1] * self.cost.s_per_step if self.steps and self.cost else None

    @property
    def solved_in_first_stage(self) -> tuple[int, int]:
        """Count of the trials of the first stage that solved the case, and of those recorded."""
        first = [lines[0] for lines in self.trials.values() if lines]
        return sum(solved(line) is not None for line in first), len(first)

    @property
    def holds(self) -> dict[int, float]:
        """By length, the median normalised score of the seeds that solved the case."""
        return self._medians([line for line in self.lines if solved(line) is not None])

    @property
    def reached_by_length(self) -> dict[int, float]:
        """By length, the median normalised score of all reported seeds."""
        return self._medians(self.lines)

    def _medians(self, lines: Sequence[Line]) -> dict[int, float]:
        return {one: median(self.normalised(line, one) for line in lines) for one in self.lengths if lines}

    @property
    def reached(self) -> tuple[float, float, float] | None:
        """Lower quartile, median and upper quartile of all reported seeds' normalised test scores."""
        scores = [self.normalised(line) for line in self.lines]
        if not scores:
            return None
        low, _, high = quartiles(scores)
        return low, median(scores), high

    @property
    def horizon(self) -> int | None:
        """The greatest length up to which every tested length is held by the median seed that solved the case."""
        return reach(self.holds)

    def reaches(self, line: Line) -> int | None:
        """The same of one run by itself."""
        return reach({length: self.normalised(line, length) for length in self.lengths})

    @property
    def group(self) -> int:
        """Its place in GROUPS."""
        if not self.complete:
            return 4
        if self.state.chosen is None:
            return 3
        count, of = self.solved
        return 0 if count >= MOST * of else 1 if count else 2

    def normalised(self, line: Line, length: int | None = None) -> float:
        """(score - trivial) / (perfect - trivial) of a run, at a length if given; minus infinity where it has none, and
        of one that diverged.
        """
        if line.diverged:
            return -inf
        name, trivial = self.score.name, f"baseline/{self.score.name.rpartition('/')[2]}"
        if length is None:
            found = self.score.normalised(line.metric(f"best_val:{name}"), line.metric(trivial))
        else:
            found = self.score.normalised(line.metric(at_length(name, length)), line.metric(at_length(trivial, length)))
        return -inf if found is None else found

    def due(self) -> dict[int, tuple[int, ...]]:
        """The seeds that are to be run next, by trial: those of the search, and then those that are reported."""
        if self.state.due:
            return self.state.due
        known = {line.seed for line in self.lines}
        gone = tuple(seed for seed in self.seeds if seed not in known)
        return {self.state.chosen: gone} if gone and self.state.chosen is not None else {}


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


def in_order(cells: Iterable[SearchedCell]) -> list[tuple[int, SearchedCell]]:
    """Cells by group, then by horizon, by the time to solve and by solved seeds, each with its place.

    Those that no seed solves are ordered by their median score. Cells that nothing tells apart share a place. The time
    is in seconds, or in steps where a step of any was not measured, or on another machine, as steps and seconds cannot
    be compared.
    """
    found = list(cells)
    costs = [cell.cost for cell in found if cell.lines]
    timed = all(costs) and step_costs.on_one_machine(filter(None, costs))

    def key(cell: SearchedCell) -> tuple[float, ...]:
        time = cell.seconds if timed else cell.steps and cell.steps[1]
        score = cell.reached[1] if cell.group == UNSOLVED and cell.reached else 0.0
        return cell.group, -(cell.horizon or 0), inf if time is None else time, -cell.solved[0], -score

    places = sorted(set(map(key, found)))
    return [(places.index(key(cell)), cell) for cell in sorted(found, key=key)]


def reach(scores: Mapping[int, float]) -> int | None:
    """The greatest length up to which every score, by length, is above 0.9; None where the first one is not."""
    held = None
    for length, score in sorted(scores.items()):
        if score <= HELD:
            break
        held = length
    return held


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """The lower quartile, the median and the upper quartile of values that may be infinite: order statistics.

    The quantile q is the least value that at least a share q of the values does not exceed, so that a censored value,
    which is only known to be larger, never takes part in a mean.
    """
    ordered = sorted(values)
    low, middle, high = (ordered[ceil(share * len(ordered)) - 1] for share in (0.25, 0.5, 0.75))
    return low, middle, high


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
    costs, _ = step_costs.current(composed, step_costs.read(results))
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


def _diverged(cells: Iterable[SearchedCell]) -> list[str]:
    counts = {cell.name: (sum(line.diverged for line in cell.lines), len(cell.lines)) for cell in cells}
    told = "reported seeds diverged, and count as the worst."
    return [f"{name}: {count} of {of} {told}" for name, (count, of) in counts.items() if count]


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
