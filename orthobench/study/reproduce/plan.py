"""Runs of tables that are left to do, cheapest first."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from orthobench.common.schema import refuse_unknown
from orthobench.common.terminal import say
from orthobench.config.configuration import Composer
from orthobench.config.settings import Settings
from orthobench.config.words import key, value
from orthobench.errors import ConfigError
from orthobench.study.records import records
from orthobench.study.records.recorded import lines_of_like, why_other
from orthobench.study.reproduce.record_line import cost, why_stale
from orthobench.study.reproduce.selection import Selection
from orthobench.study.tables import table as experiment
from orthobench.study.tables.composed import ComposedTable, fitted_size
from orthobench.study.tables.published import load_table
from orthobench.study.tables.table import PUBLISHED, Table, TableRun
from orthobench.study.verdicts.fair import fair_table, rates
from orthobench.study.verdicts.fair_entry import names
from orthobench.study.verdicts.searched import cells_of, joined, searched_table


@dataclass(frozen=True, eq=False)
class PlannedRun:
    """Run to do.

    Attributes:
        cost: rough measure of the arithmetic of its training, without a unit; runs are ordered by it.
        timed: whether its table reports times, so that nothing else may run beside it.
        stale: why what is recorded or finished of it does not count; null where nothing is.
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
        preset = "" if self.job.preset == experiment.FULL else f" ({self.job.preset})"
        return f"{self.job.table} {self.job.row} seed {self.job.seed}{preset}"

    @property
    def row(self) -> tuple[str, str, str]:
        """The table, row and preset that the run belongs to."""
        return self.job.table, self.job.row, self.job.preset

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
    """

    runs: list[PlannedRun] = field(default_factory=list)
    recorded: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    later: int = 0

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
        known = [(order.get((run.job.table, run.table.base(run.job.row)), -1), run) for run in self.runs]
        self.runs = [run for number, run in sorted(known, key=lambda one: one[0]) if number >= 0]


def plan(asked: Selection) -> Plan:
    """The runs of a selection that are left to do.

    Raises:
        ConfigError: there is no such preset or row, or an extra word changes the numbers.
    """
    found = Plan()
    for table in asked.tables:
        composer, name = table.files.composer(), table.name
        table = joined(table, asked.models) if table.search else table
        timed = any(row.metric.startswith("time/") for row in load_table(table))
        known = {(line.preset, line.row, line.seed): line for line in records.read(asked.results, name)}
        for row, own in _due(table, asked, found).items():
            jobs = table.runs(asked.preset, own, [row])
            try:
                _refuse_changes(composer, jobs[0], asked.extra)
                settings = _fitted([composer.settings([*job.overrides, *asked.extra]) for job in jobs])
            except ConfigError as error:
                if not _waits_for_a_model(table, row):
                    raise
                found.refused[f"{name} {row}"] = str(error)
                continue
            price = cost(settings[0])
            for job, one in zip(jobs, settings, strict=True):
                line = known.get((job.preset, job.row, job.seed))
                why = None if line is None else why_other(line, one)
                if line is not None and why is None:
                    found.recorded += 1
                    continue
                stale = why_stale(one) if line is None else f"run {line.run_id} is recorded, {why}."
                found.runs.append(PlannedRun(table, job, one, price, timed, stale, _place(table, row)))
    found.runs.sort(key=lambda run: (run.place, run.cost))
    return found


def take_over(asked: Selection) -> None:
    """Give tables that are like others the records of these that are of their own settings, and say how many."""
    results = asked.results
    for table in asked.tables:
        if table.like is not None:
            with records.locked(results, table.name):
                found = lines_of_like(ComposedTable(table, asked.preset), results)
                records.add(results, table.name, found)
            if found:
                say(f"{table.name}: {len(found)} records of {table.like} are of the same settings, and are taken over")


def _due(table: Table, asked: Selection, found: Plan) -> dict[str, tuple[int, ...]]:
    """The seeds to run by row: all of a published table; of another one those that come next, by what is recorded."""
    rows = asked.rows if asked.models is None else asked.models
    if table.track == PUBLISHED:
        own = tuple(table.planned(asked.preset) if asked.seeds is None else asked.seeds)
        return dict.fromkeys(table.trained(rows), own)
    what = "its tuning" if table.search is None else "its search"
    if asked.seeds is not None:
        raise ConfigError(
            f"{table.name} is a {table.track} table: its seeds and those of {what} are in its file, "
            "so leave --seeds out."
        )
    if table.search is not None:
        known = cells_of(table)
        refuse_unknown(rows or (), known, "cell=", f" is no cell of {table.name}")
        chosen = tuple(known if rows is None else rows)
        searched = searched_table(table, asked.results, asked.preset)
        found.recorded += sum(cell.recorded for cell in searched.cells if cell.name in chosen)
        found.later += searched.later(chosen)
        return {row: own for due in searched.due(chosen).values() for row, own in due.items()}
    models = dict.fromkeys(variant.base for variant in table.variants.values())
    cells = [*models, *(name for entry in rates(table) for name in sorted(names(*entry)) if name not in models)]
    refuse_unknown(rows or (), cells, "cell=", f" is no model of {table.name}")
    chosen = tuple(models if rows is None else rows)
    fair = fair_table(table, asked.results, asked.preset, chosen)
    entries = [entry for entry in fair.entries if not entry.names.isdisjoint(chosen)]
    found.recorded += sum(len(lines) for entry in entries for lines in (*entry.tuned.values(), entry.lines))
    found.later += sum(len(fair.seeds) for entry in entries if entry.choice.missing)
    return fair.due(chosen)


def _place(table: Table, row: str) -> int:
    return cells_of(table).index(table.variants[row].base) if table.search else 0


def _fitted(seeds: list[Settings]) -> list[Settings]:
    """The settings of all seeds of a row, with the hidden size that its budget of parameters, if any, allows."""
    if seeds[0].run["params"] is None:
        return seeds
    size = fitted_size(seeds[0])
    return [one.with_hidden_size(size) for one in seeds]


def _waits_for_a_model(table: Table, row: str) -> bool:
    """Return True if a row names a model or task that does not exist yet."""
    chosen = [(key(word), value(word)) for word in table.row(row)]
    return any(group in ("model", "task") and name not in table.files.options(group) for group, name in chosen)


def _refuse_changes(composer: Composer, job: TableRun, extra: tuple[str, ...]) -> None:
    if not extra:
        return
    changed = composer.settings([*job.overrides, *extra])
    if not changed.data["verify"]:
        raise ConfigError(
            f"data.verify=false does not apply to {job.table}: "
            "a table holds numbers of published data, so leave it out."
        )
    if changed.run_id == composer.settings(list(job.overrides)).run_id:
        return
    raise ConfigError(
        f"{' '.join(extra)} changes the numbers of {job.table}; only its own settings fill it, so leave that out."
    )
