"""Which runs of which tables are left to do, cheapest first."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from orthobench.analysis import records
from orthobench.analysis.published import load_table, papers
from orthobench.config import table as experiment
from orthobench.config.files import options
from orthobench.config.many import Composer
from orthobench.config.settings import Settings
from orthobench.config.table import Table, TableRun
from orthobench.config.words import key, value
from orthobench.errors import ConfigError
from orthobench.launch.collect import cost
from orthobench.run.build import fit_to_budget
from orthobench.schema import did_you_mean


@dataclass(frozen=True, eq=False)
class PlannedRun:
    """One run to do.

    Attributes:
        cost: arithmetic of its training, in no unit; orders runs.
        timed: whether its table says something about time, so that it needs the machine for itself.
    """

    table: Table
    job: TableRun
    settings: Settings
    cost: float
    timed: bool

    @property
    def label(self) -> str:
        """Its table, row, seed and preset, as messages name it."""
        preset = "" if self.job.preset == experiment.FULL else f" ({self.job.preset})"
        return f"{self.job.table} {self.job.row} seed {self.job.seed}{preset}"

    @property
    def row(self) -> tuple[str, str, str]:
        """The table, the row and the preset that it is for."""
        return self.job.table, self.job.row, self.job.preset

    @property
    def data(self) -> str:
        """The data that it reads."""
        return f"{self.settings.task['name']} {self.settings.task.get('dataset', '')}"


@dataclass
class Plan:
    """What there is to do.

    Attributes:
        runs: cheapest first.
        recorded: how many are recorded already.
        refused: rows that cannot be built, each with the reason.
    """

    runs: list[PlannedRun] = field(default_factory=list)
    recorded: int = 0
    refused: dict[str, str] = field(default_factory=dict)


def select(names: Iterable[str], folders: tuple[Path, ...] = ()) -> list[str]:
    """Tables by name, by paper, `fair`, or `all` of the papers; of a user's folder by name or its first part.

    Raises:
        ConfigError: none of these.
    """
    known, known_papers, found = experiment.tables(folders), papers(folders), []
    for name in names:
        wanted = known_papers if name == "all" else (name,)
        chosen = [t for t in known if t in wanted or t.split("/")[0] in wanted]
        if not chosen:
            raise ConfigError(f"{name} is no table or paper: {did_you_mean(name, [*known, *known_papers, 'all'])}")
        found += chosen
    return list(dict.fromkeys(found))


def plan(
    tables: Iterable[str],
    preset: str = experiment.FULL,
    seeds: Iterable[int] | None = None,
    rows: Iterable[str] | None = None,
    extra: tuple[str, ...] = (),
    folders: tuple[Path, ...] = (),
) -> tuple[Plan, Path]:
    """What a call has to do, and the results folder.

    Raises:
        ConfigError: no such preset or row, or an extra word that changes the numbers.
    """
    composer, found, results = Composer(folders), Plan(), _results("results", preset)
    for name in tables:
        table = experiment.load(name, folders)
        timed = table.track == experiment.FAIR or any(row.metric.startswith("time/") for row in load_table(table))
        known: dict[Path, set[tuple[str, str, str]]] = {}
        for row in table.rows if rows is None else rows:
            jobs = table.runs(preset, seeds, [row])
            try:
                _refuse_changes(composer, jobs[0], extra)
                settings = _fitted([composer.settings([*job.overrides, *extra]) for job in jobs])
            except ConfigError as error:
                if not _waits_for_a_model(table.row(row), folders):
                    raise
                found.refused[f"{name} {row}"] = str(error)
                continue
            results = _results(settings[0].run["results_root"], preset)
            if results not in known:
                known[results] = {(line.run_id, line.preset, line.row) for line in records.read(results, name)}
            price = cost(settings[0])
            for job, one in zip(jobs, settings, strict=True):
                if (one.run_id, job.preset, job.row) in known[results]:
                    found.recorded += 1
                else:
                    found.runs.append(PlannedRun(table, job, one, price, timed))
    found.runs.sort(key=lambda run: run.cost)
    return found, results


def _fitted(seeds: list[Settings]) -> list[Settings]:
    """The seeds of a row, whose budget of parameters, if it has one, decides their one hidden size."""
    if seeds[0].run["params"] is None:
        return seeds
    size = fit_to_budget(seeds[0]).model["hidden_size"]
    return [one.with_hidden_size(size) for one in seeds]


def _results(root: str, preset: str) -> Path:
    """Where a preset's records and tables are."""
    return Path(root) if preset == experiment.FULL else Path(root) / preset


def _waits_for_a_model(overrides: Iterable[str], folders: tuple[Path, ...]) -> bool:
    """Whether a row names a model or task that there is not."""
    chosen = [(key(word), value(word)) for word in overrides]
    return any(group in ("model", "task") and name not in options(group, folders) for group, name in chosen)


def _refuse_changes(composer: Composer, job: TableRun, extra: tuple[str, ...]) -> None:
    if not extra or composer.settings([*job.overrides, *extra]).run_id == composer.settings(list(job.overrides)).run_id:
        return
    raise ConfigError(f"{' '.join(extra)} changes the numbers of {job.table}; only a table's own settings fill it.")
