"""Running published tables: every run in a process of its own, cheapest first, each recorded as soon as it is done.

What is recorded already is skipped, what is finished under runs/ is only recorded, what was stopped goes on. A GPU
trains the seeds of a cell as one program, unless the table is about time. A shortened table is recorded and rendered
under results/<preset>/, beside what is kept for good.
"""

import contextlib
import re
import shutil
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from orthobench import signals
from orthobench.analysis import curves, records
from orthobench.analysis.published import PAPERS, load_table
from orthobench.config import table as experiment
from orthobench.config.check import Settings
from orthobench.config.many import Composer
from orthobench.config.table import Job, Table
from orthobench.ensemble.grouping import groups
from orthobench.errors import ConfigError, DataError, Stopped
from orthobench.launch import processes as child
from orthobench.launch.collect import collect, cost, drawn
from orthobench.launch.processes import Pool, exit_code, outcome
from orthobench.recording.digest import final
from orthobench.registry import find
from orthobench.run.build import fit_to_budget
from orthobench.schema import did_you_mean
from orthobench.terminal import complain, duration_text, say

REFRESH_S = 0.5
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True, eq=False)
class Run:
    """One run to do.

    Attributes:
        cost: arithmetic of its training, in no unit; orders runs.
        timed: whether its table says something about time, so that it needs the machine for itself.
    """

    table: Table
    job: Job
    settings: Settings
    cost: float
    timed: bool

    @property
    def label(self) -> str:
        """What a person knows it by."""
        preset = "" if self.job.preset == experiment.FULL else f" ({self.job.preset})"
        return f"{self.job.table} {self.job.cell} seed {self.job.seed}{preset}"

    @property
    def cell(self) -> tuple[str, str, str]:
        """The cell of a table that it is for."""
        return self.job.table, self.job.cell, self.job.preset

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
        refused: cells that cannot be built, each with the reason.
    """

    runs: list[Run] = field(default_factory=list)
    recorded: int = 0
    refused: dict[str, str] = field(default_factory=dict)


def select(names: Iterable[str], folders: tuple[Path, ...] = ()) -> list[str]:
    """Tables by name, by paper, `fair`, or `all` of the papers; of a user's folder by name or its first part.

    Raises:
        ConfigError: none of these.
    """
    known, found = experiment.tables(folders), []
    for name in names:
        wanted = PAPERS if name == "all" else (name,)
        chosen = [t for t in known if t in wanted or t.split("/")[0] in wanted]
        if not chosen:
            raise ConfigError(f"{name} is no table or paper: {did_you_mean(name, [*known, *PAPERS, 'all'])}")
        found += chosen
    return list(dict.fromkeys(found))


def seconds(text: str) -> float:
    """`2h`, `1h30m`, `90s` or `90` in seconds.

    Raises:
        ConfigError: another form.
    """
    parts = re.findall(r"(\d+(?:\.\d+)?)([smhd])", text)
    if "".join(number + unit for number, unit in parts) == text and parts:
        return sum(float(number) * UNITS[unit] for number, unit in parts)
    if text.isdigit():
        return float(text)
    raise ConfigError(f"--budget {text} is not a time such as 2h, 1h30m or 90s.")


def plan(
    tables: Iterable[str],
    preset: str = experiment.FULL,
    seeds: Iterable[int] | None = None,
    cells: Iterable[str] | None = None,
    extra: tuple[str, ...] = (),
    folders: tuple[Path, ...] = (),
) -> tuple[Plan, Path]:
    """What a call has to do, and the results folder.

    Raises:
        ConfigError: no such preset or cell, or an extra word that changes the numbers.
    """
    composer, found, results = Composer(folders), Plan(), _results("results", preset)
    for name in tables:
        table = experiment.load(name, folders)
        timed = table.track == experiment.FAIR or any(row.metric.startswith("time/") for row in load_table(name))
        known: dict[Path, set[tuple[str, str, str]]] = {}
        for cell in table.cells if cells is None else cells:
            jobs = table.jobs(preset, seeds, [cell])
            try:
                _refuse_changes(composer, jobs[0], extra)
                settings = _fitted([composer.settings([*job.overrides, *extra]) for job in jobs])
            except ConfigError as error:
                if not _waits_for_a_model(table.cell(cell), folders):
                    raise
                found.refused[f"{name} {cell}"] = str(error)
                continue
            results = _results(settings[0].run["results_root"], preset)
            if results not in known:
                known[results] = {(line.run_id, line.preset, line.cell) for line in records.read(results, name)}
            price = cost(settings[0])
            for job, one in zip(jobs, settings, strict=True):
                if (one.run_id, job.preset, job.cell) in known[results]:
                    found.recorded += 1
                else:
                    found.runs.append(Run(table, job, one, price, timed))
    found.runs.sort(key=lambda run: run.cost)
    return found, results


def _fitted(seeds: list[Settings]) -> list[Settings]:
    """The seeds of a cell, whose budget of parameters, if it has one, decides their one hidden size."""
    if seeds[0].run["params"] is None:
        return seeds
    size = fit_to_budget(seeds[0]).model["hidden_size"]
    return [one.with_hidden_size(size) for one in seeds]


def _results(root: str, preset: str) -> Path:
    """Where a preset's records and tables are."""
    return Path(root) if preset == experiment.FULL else Path(root) / preset


def _waits_for_a_model(overrides: Iterable[str], folders: tuple[Path, ...]) -> bool:
    """Whether a cell names a model or task that there is not."""
    from orthobench.config.compose import options

    chosen = [(experiment.key(word), experiment.value(word)) for word in overrides]
    return any(key in ("model", "task") and value not in options(key, folders) for key, value in chosen)


def _refuse_changes(composer: Composer, job: Job, extra: tuple[str, ...]) -> None:
    if not extra or composer.settings([*job.overrides, *extra]).run_id == composer.settings(list(job.overrides)).run_id:
        return
    raise ConfigError(f"{' '.join(extra)} changes the numbers of {job.table}; only a table's own settings fill it.")


class Runner:
    """Runs child processes, some at a time, until all are done or time is up.

    Args:
        results: where records are kept.
        at_once: how many run side by side.
        budget_s: seconds after which none is started and those at work are stopped; null for no limit.
        extra: further words for every child.
        folders: further configuration folders.
    """

    def __init__(
        self, results: Path, at_once: int, budget_s: float | None, extra: tuple[str, ...], folders: tuple[Path, ...]
    ) -> None:
        self.results, self.extra = results, extra
        options = [option for folder in folders for option in ("--config-dir", str(folder))]
        self.pool = Pool(at_once, options, self._over, self._known)
        self.started = time.monotonic()
        self.deadline = None if budget_s is None else self.started + budget_s
        self.codes: dict[Run, int] = {}
        self.lacking: set[str] = set()
        self.last = ""
        self._shown = 0.0
        self._jobs: dict[child.Job, list[Run]] = {}

    def __call__(self, runs: list[Run]) -> None:
        """Run them in this order; `codes` then has an exit code for each that was started."""
        self._jobs = {self._job(some): some for some in _together(runs)}
        with signals.watched(program=True):
            for ended in self.pool.run(list(self._jobs)):
                for job, code in ended:
                    for run, own in zip(self._jobs[job], job.codes(code), strict=True):
                        self._finish(run, own)
                if ended or time.monotonic() - self._shown > REFRESH_S:
                    self._show(runs)
        self._show(runs, last=True)

    def log(self, run: Run) -> Path:
        """What a run said."""
        return next(job.log for job, runs in self._jobs.items() if run in runs and job.log)

    def _over(self) -> bool:
        return signals.asked() is not None or (self.deadline is not None and time.monotonic() > self.deadline)

    def _job(self, runs: list[Run]) -> child.Job:
        words = [[*run.job.overrides, f"cell={run.job.cell}", *self.extra] for run in runs]
        first = runs[0].settings
        beside = Path(first.run["runs_root"]) / ".reproduce" / first.run_id
        files = beside.with_suffix(".log"), beside.with_suffix(".members.json")
        return child.Job(words, [run.settings.folder for run in runs], first.run["timeout"], *files)

    def _known(self, job: child.Job) -> int | None:
        """The exit code of a job that need not be started."""
        if all(final(folder / "record.json") for folder in job.folders):
            return 0
        return DataError.exit_code if self._jobs[job][0].data in self.lacking else None

    def _finish(self, run: Run, code: int) -> None:
        self.codes[run] = code
        if code == DataError.exit_code:
            self.lacking.add(run.data)
        line = collect(run.settings, run.job.table, run.job.preset, run.job.cell)
        if line is not None:
            records.add(self.results, run.job.table, [line])
            curves.add(self.results, run.job.table, drawn(run.settings, run.table, run.job.preset, run.job.cell))
            self.codes[run] = 0  # recorded, and a diverged run is a result
        elif code == 0:
            self.codes[run] = Stopped.exit_code  # another process has it
        self.last = f"{run.label}: {outcome(self.codes[run]) if line is None else score(run.settings, line)}"
        if not sys.stdout.isatty():
            say(f"[{len(self.codes)}] {self.last}")

    def _show(self, runs: list[Run], last: bool = False) -> None:
        """One line that is written over, on a terminal only."""
        if not sys.stdout.isatty():
            return
        now = [
            f"{run.job.table} {run.job.cell} {run.job.seed}" for at in self.pool.working for run in self._jobs[at.job]
        ]
        parts = [progress(runs, self.codes, time.monotonic() - self.started), self.last, *now[:1]]
        text = "; ".join(part for part in parts if part)[: shutil.get_terminal_size().columns - 1]
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.write(f"\r\x1b[2K{text}" + ("\n" if last else ""))
            sys.stdout.flush()


def progress(runs: list[Run], codes: dict[Run, int], spent_s: float) -> str:
    """Cells and runs done of all, failures, and the time left at the cost per second so far."""
    cells, left = {run.cell for run in runs}, {run.cell for run in runs if codes.get(run) != 0}
    failed = sum(code not in (0, Stopped.exit_code) for code in codes.values())
    done, total = sum(run.cost for run in codes), sum(run.cost for run in runs)
    text = f"{len(cells - left)} of {len(cells)} cells, {len(codes)} of {len(runs)} runs, {failed} failed"
    rest = f", about {duration_text(spent_s * (total - done) / done)} left" if 0 < done < total else ""
    return f"{text}, {duration_text(spent_s)}{rest}"


def score(settings: Settings, line: records.Line) -> str:
    """The headline metric of a finished run."""
    metric = f"test/{find('task', settings.task['name'], 'task').metric}"  # type: ignore[attr-defined]
    value = line.metric(metric, "best_val")
    return line.values["status"] if value is None else f"{metric} {value:.4g}"


def _together(runs: list[Run]) -> list[list[Run]]:
    """The runs of every process: the seeds of a cell, where one program can train them, and otherwise each alone."""
    cells: dict[tuple[str, str, str], list[Run]] = {}
    for run in runs:
        cells.setdefault(run.cell if not run.timed else (run.settings.run_id, *run.cell[:2]), []).append(run)
    return [[some[i] for i in group] for some in cells.values() for group in groups([run.settings for run in some])]


def reproduce(found: Plan, runner: Runner) -> int:
    """Do what a plan says, tell what failed, and return 0 or the code of the first failure."""
    runs = found.runs
    say(f"{len(runs)} runs to do, {found.recorded} recorded already, {len(found.refused)} cells cannot be built yet")
    runner(runs)
    failed = {run: code for run, code in runner.codes.items() if code not in (0, Stopped.exit_code)}
    for run, code in failed.items():
        what = f"not run, needs {run.table.needs}" if _excused(run, code) else outcome(code)
        complain(f"{run.label}: {what}; {_last_line(runner.log(run))}")
    for cell, reason in found.refused.items():
        complain(f"{cell}: not run, {reason}")
    done = sum(code == 0 for code in runner.codes.values())
    left = len(runs) - done - len(failed)
    say(f"{done} of {len(runs)} runs recorded, {len(failed)} failed, {left} left" + (HINT if left else ""))
    if signals.asked() is not None:
        return Stopped.exit_code
    return exit_code([code for run, code in failed.items() if not _excused(run, code)])


HINT = "; the same command goes on"


def _excused(run: Run, code: int) -> bool:
    """Whether it lacks data that the table says not everyone has."""
    return code == DataError.exit_code and run.table.needs is not None


def _last_line(log: Path) -> str:
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except OSError:
        return "the same data is missing as above"
    return lines[-1] if lines else f"nothing was said; {log}"
