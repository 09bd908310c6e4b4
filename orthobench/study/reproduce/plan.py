"""Runs of tables that are left to do, cheapest first."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from orthobench.common.schema import did_you_mean
from orthobench.common.terminal import say
from orthobench.config import places
from orthobench.config.configuration import Composer
from orthobench.config.settings import Settings
from orthobench.config.words import key, value
from orthobench.errors import ConfigError
from orthobench.models.build import fit_to_budget
from orthobench.study.records import records
from orthobench.study.records.recorded import alike, why_other
from orthobench.study.reproduce.record_line import cost, why_stale
from orthobench.study.tables import table as experiment
from orthobench.study.tables.composed import ComposedTable
from orthobench.study.tables.published import load_table
from orthobench.study.tables.table import Table, TableRun
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

    def only(self, places: list[tuple[str, str]]) -> None:
        """Leave the runs of these rows of tables alone, in this order."""
        order = {place: number for number, place in enumerate(places)}
        known = [(order.get((run.job.table, run.table.base(run.job.row)), -1), run) for run in self.runs]
        self.runs = [run for number, run in sorted(known, key=lambda one: one[0]) if number >= 0]


def plan(
    tables: Iterable[Table],
    preset: str = experiment.FULL,
    seeds: Iterable[int] | None = None,
    rows: Iterable[str] | None = None,
    extra: tuple[str, ...] = (),
    models: Iterable[str] | None = None,
) -> tuple[Plan, Path]:
    """The plan of a call, and the results folder; `models` are the cells of searched tables that are meant.

    Raises:
        ConfigError: there is no such preset or row, or an extra word changes the numbers.
    """
    found, results = Plan(), results_of(extra, preset)
    for table in tables:
        composer, name = table.files.composer(), table.name
        table = joined(table, models) if table.search else table
        timed = any(row.metric.startswith("time/") for row in load_table(table))
        known = {(line.preset, line.row, line.seed): line for line in records.read(results, name)}
        for row, own in _due(table, preset, seeds, rows if models is None else models, results, found).items():
            jobs = table.runs(preset, own, [row])
            try:
                _refuse_changes(composer, jobs[0], extra)
                settings = _fitted([composer.settings([*job.overrides, *extra]) for job in jobs])
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
    return found, results


def take_over(tables: Iterable[Table], results: Path, preset: str) -> None:
    """Give tables that are like others the records of these that are of their own settings, and say how many."""
    for table in tables:
        if table.like is not None:
            with records.locked(results, table.name):
                found = alike(ComposedTable(table, preset), results)
                records.add(results, table.name, found)
            if found:
                say(f"{table.name}: {len(found)} records of {table.like} are of the same settings, and are taken over")


def _due(
    table: Table,
    preset: str,
    seeds: Iterable[int] | None,
    rows: Iterable[str] | None,
    results: Path,
    found: Plan,
) -> dict[str, tuple[int, ...]]:
    """The seeds to run by row: all of a published table; of a fair one those that come next, by what is recorded."""
    if table.search is not None:
        return _searched(table, preset, seeds, rows, results, found)
    if table.tuning is None:
        own = tuple(table.planned(preset) if seeds is None else seeds)
        return dict.fromkeys(table.trained(rows), own)
    if seeds is not None:
        raise ConfigError(f"{table.name} is a fair table: its seeds and those of its tuning are in its file.")
    models = dict.fromkeys(variant.base for variant in table.variants.values())
    cells = [*models, *(name for entry in rates(table) for name in sorted(names(*entry)) if name not in models)]
    for name in rows or ():
        if name not in cells:
            raise ConfigError(f"cell={name} is no model of {table.name}: {did_you_mean(name, cells)}")
    chosen = tuple(models if rows is None else rows)
    fair = fair_table(table, results, preset, chosen)
    known = [entry for entry in fair.entries if not entry.names.isdisjoint(chosen)]
    found.recorded += sum(len(lines) for entry in known for lines in (*entry.tuned.values(), entry.lines))
    found.later += sum(len(fair.seeds) for entry in known if entry.choice.missing)
    return fair.due(chosen)


def _searched(
    table: Table, preset: str, seeds: Iterable[int] | None, cells: Iterable[str] | None, results: Path, found: Plan
) -> dict[str, tuple[int, ...]]:
    """The seeds to run next by row of a searched table, one cell after the other."""
    if seeds is not None:
        raise ConfigError(f"{table.name} is a searched table: its seeds and those of its search are in its file.")
    known = cells_of(table)
    for name in cells or ():
        if name not in known:
            raise ConfigError(f"cell={name} is no cell of {table.name}: {did_you_mean(name, known)}")
    chosen = tuple(known if cells is None else cells)
    made = searched_table(table, results, preset)
    found.recorded += sum(cell.recorded for cell in made.cells if cell.name in chosen)
    found.later += made.later(chosen)
    return {row: own for due in made.due(chosen).values() for row, own in due.items()}


def _place(table: Table, row: str) -> int:
    return cells_of(table).index(table.variants[row].base) if table.search else 0


def first_cells(found: Plan, least: int) -> list[PlannedRun]:
    """The runs of the first cells of searched tables, `least` runs or more; the other runs are counted as later.

    So that one cell is complete before the next one is begun, as far as there is work for all processes.
    """
    runs: list[PlannedRun] = []
    for run in found.runs:
        if run.table.search and len(runs) >= least and run.place != runs[-1].place:
            break
        runs.append(run)
    found.later += len(found.runs) - len(runs)
    found.runs = runs
    return runs


def _fitted(seeds: list[Settings]) -> list[Settings]:
    """The settings of all seeds of a row, with the hidden size that its budget of parameters, if any, allows."""
    if seeds[0].run["params"] is None:
        return seeds
    size = fit_to_budget(seeds[0]).model["hidden_size"]
    return [one.with_hidden_size(size) for one in seeds]


def results_of(words: Iterable[str], preset: str) -> Path:
    """The folder of a preset's records and tables, by `results_root=` among the words of a command."""
    root = Path(next((places.path(word) for word in reversed([*words]) if key(word) == "results_root"), "results"))
    return root if preset == experiment.FULL else root / preset


def _waits_for_a_model(table: Table, row: str) -> bool:
    """Return True if a row names a model or task that does not exist yet."""
    chosen = [(key(word), value(word)) for word in table.row(row)]
    return any(group in ("model", "task") and name not in table.files.options(group) for group, name in chosen)


def _refuse_changes(composer: Composer, job: TableRun, extra: tuple[str, ...]) -> None:
    if not extra:
        return
    changed = composer.settings([*job.overrides, *extra])
    if not changed.data["verify"]:
        raise ConfigError(f"data.verify=false does not apply to {job.table}: a table holds numbers of published data.")
    if changed.run_id == composer.settings(list(job.overrides)).run_id:
        return
    raise ConfigError(f"{' '.join(extra)} changes the numbers of {job.table}; only a table's own settings fill it.")
