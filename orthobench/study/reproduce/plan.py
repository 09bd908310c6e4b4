"""Runs of tables that are left to do, cheapest first."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from orthobench.common.terminal import say
from orthobench.config.settings import Settings
from orthobench.config.words import key, value
from orthobench.errors import ConfigError
from orthobench.study.costs.known_costs import KnownCosts
from orthobench.study.records import records
from orthobench.study.records.recorded import why_other
from orthobench.study.reproduce.due import SelectedTable, selected_tables
from orthobench.study.reproduce.record_line import cost, why_stale
from orthobench.study.reproduce.selection import Selection
from orthobench.study.tables.composed import ComposedTable
from orthobench.study.tables.published import load_table
from orthobench.study.tables.table import FULL, Table, TableRun
from orthobench.study.verdicts.searched import SearchedTable, cells_of


@dataclass(frozen=True, eq=False)
class PlannedRun:
    """Run to do.

    Attributes:
        cost: rough measure of the arithmetic of its training, without a unit; runs are ordered by it.
        timed: whether its table reports times, so that nothing else may run beside it.
        stale: why what is recorded or finished of it does not count; None where nothing is.
        place: where its cell stands in a table that makes one cell after the other; 0 in other tables.
    """

    table: Table
    job: TableRun
    settings: Settings
    cost: float
    timed: bool
    stale: str | None = None
    place: int = 0

    @property
    def label(self) -> str:
        """The table, row, seed and preset, as messages name the run."""
        preset = "" if self.job.preset == FULL else f" ({self.job.preset})"
        return f"{self.job.table} {self.job.row} seed {self.job.seed}{preset}"

    @property
    def row(self) -> tuple[str, str, str]:
        """The table, row and preset that the run belongs to."""
        return self.job.table, self.job.row, self.job.preset

    @property
    def printed_row(self) -> tuple[str, str]:
        """The table and its row, which is trained with several rates where the paper states none."""
        return self.job.table, self.table.base(self.job.row)

    @property
    def data(self) -> str:
        """The task and the data set that the run reads."""
        return f"{self.settings.task['name']} {self.settings.task.get('dataset', '')}"


@dataclass
class Plan:
    """The runs that are left to do.

    Attributes:
        runs: the runs, cheapest first.
        recorded: how many runs are recorded already.
        refused: the rows that cannot be built, each with the reason.
        later: runs of fair tables that follow when the rates are tuned, and are not among `runs`; of a searched table
            those that follow at the most.
        results: the folder of their records.
        searched: the searched table by its records, where the plan is of one alone.
    """

    runs: list[PlannedRun] = field(default_factory=list)
    recorded: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    later: int = 0
    results: Path = Path("results")
    searched: SearchedTable | None = None

    def add(self, other: "Plan") -> None:
        """Take in the runs of another plan in their order."""
        self.runs = sorted([*self.runs, *other.runs], key=lambda run: (run.place, run.cost))
        self.recorded, self.later = self.recorded + other.recorded, self.later + other.later
        self.refused |= other.refused

    def first_cells(self, least: int) -> None:
        """Leave the runs of the first cells of searched tables, `least` runs or more; others are counted as later.

        So that one cell is complete before the next one is begun, as far as there is work for all processes.
        """
        for number, run in enumerate(self.runs):
            if run.table.search and number >= least and run.place != self.runs[number - 1].place:
                self.later += len(self.runs) - number
                del self.runs[number:]
                return

    def only(self, places: Iterable[tuple[str, str]]) -> None:
        """Leave the runs of these rows of tables alone, in this order."""
        order = {place: number for number, place in enumerate(places)}
        known = [(order.get(run.printed_row, -1), run) for run in self.runs]
        self.runs = [run for number, run in sorted(known, key=lambda one: one[0]) if number >= 0]

    def known_costs(self, record: bool = False) -> KnownCosts | None:
        """The costs that are known of its runs, see `KnownCosts`; None where there are none."""
        return KnownCosts(self.results, Path(self.runs[0].settings.run["runs_root"]), record) if self.runs else None


def plan(asked: Selection) -> Plan:
    """The runs of a selection that are left to do.

    Raises:
        ConfigError: there is no such preset or row, or an extra word changes the numbers.
    """
    found = Plan(results=asked.results)
    for one in selected_tables(asked):
        found.add(plan_table(one))
    return found


def plan_table(one: SelectedTable) -> Plan:
    """The runs of one table that are left to do, of the rows that come next.

    Raises:
        ConfigError: there is no such preset or row, or an extra word changes the numbers.
    """
    composed, table = one.composed, one.composed.table
    timed = any(row.metric.startswith("time/") for row in load_table(table))
    lines = [*records.read(one.results, table.name), *one.of_like]
    known = {(line.preset, line.row, line.seed): line for line in lines}
    due, cells = one.due(), cells_of(table) if table.search else ()
    own = ComposedTable(table, composed.preset)  # which composes no file again for every row
    found = Plan([], due.recorded, {}, due.later, one.results, due.searched)
    for row, seeds in due.seeds.items():
        jobs = table.runs(composed.preset, seeds, [row])
        try:
            _refuse_changes(composed, own, row, jobs[0].seed)
            settings = [composed.settings(row, job.seed) for job in jobs]
        except ConfigError as error:
            if not _waits_for_a_model(table, row):
                raise
            found.refused[f"{table.name} {row}"] = str(error.__cause__ or error)
            continue
        price, place = cost(settings[0]), cells.index(table.variants[row].base) if cells else 0
        for job, run in zip(jobs, settings, strict=True):
            line = known.get((job.preset, job.row, job.seed))
            why = None if line is None else why_other(line, run)
            if line is not None and why is None:
                found.recorded += 1
                continue
            stale = why_stale(run) if line is None else f"run {line.run_id} is recorded, {why}."
            found.runs.append(PlannedRun(table, job, run, price, timed, stale, place))
    found.runs.sort(key=lambda run: (run.place, run.cost))
    return found


def take_over(asked: Selection) -> None:
    """Give tables that are like others the records of these that are of their own settings, and say how many."""
    for one in selected_tables(asked):
        _take_over(one)


def _take_over(one: SelectedTable) -> None:
    table = one.composed.table
    if table.like is None:
        return
    with records.locked(one.results, table.name):
        records.add(one.results, table.name, one.of_like)
    if one.of_like:
        say(f"{table.name}: {len(one.of_like)} records of {table.like} are of the same settings, and are taken over")


def _waits_for_a_model(table: Table, row: str) -> bool:
    """Return True if a row names a model or task that does not exist yet."""
    chosen = [(key(word), value(word)) for word in table.row(row)]
    return any(group in ("model", "task") and name not in table.files.options(group) for group, name in chosen)


def _refuse_changes(composed: ComposedTable, own: ComposedTable, row: str, seed: int) -> None:
    """Refuse further words that change the numbers of a table.

    Args:
        composed: the table with these words.
        own: the same without them.
        row: the row.
        seed: one of its seeds.

    Raises:
        ConfigError: they do.
    """
    if not composed.extra:
        return
    changed, name = composed.unfitted(row, seed), composed.table.name
    if not changed.data["verify"]:
        raise ConfigError(
            f"data.verify=false does not apply to {name}: a table holds numbers of published data, so leave it out."
        )
    if changed.run_id == own.unfitted(row, seed).run_id:
        return
    raise ConfigError(
        f"{' '.join(composed.extra)} changes the numbers of {name}; only its own settings fill it, so leave that out."
    )
