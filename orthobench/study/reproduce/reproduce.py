"""Running published tables: every run in its own process, cheapest first, each recorded as soon as it is done.

Runs that are recorded already are skipped, runs that are finished under runs/ are only recorded, and stopped runs are
resumed. A GPU trains the seeds of a row as one program, unless the table reports times. A shortened table is recorded
and rendered under results/<preset>/, apart from the full tables.
"""

import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from orthobench.common import signals
from orthobench.common.terminal import complain, say
from orthobench.config.settings import Settings
from orthobench.errors import ConfigError, DataError, Stopped, StorageError
from orthobench.launch import processes as child
from orthobench.launch.processes import Pool, exit_code, last_line, outcome, prepared
from orthobench.launch.workers import Launcher
from orthobench.recording.digest import final
from orthobench.run.grouping import groups
from orthobench.study.costs.known_costs import KnownCosts
from orthobench.study.launcher import launcher_of
from orthobench.study.overview import Overview, Watched
from orthobench.study.records import curves, records
from orthobench.study.reproduce.cheapest import ChosenRow
from orthobench.study.reproduce.plan import Plan, PlannedRun, plan
from orthobench.study.reproduce.record_line import record_line, steps, thinned_curves
from orthobench.study.reproduce.selection import Selection

ENOUGH = 4  # runs for every process, before the next cell of a searched table is begun
HINT = "; the same command resumes"


class Runner:
    """Runs child processes, several at a time, until all are done or the time is up.

    Args:
        results: the folder of the records.
        at_once: how many run at the same time.
        budget_s: seconds after which no process is started and the running ones are stopped; None for no limit.
        place: where they run; this machine when None.
        fits: whether a run that does not fit into what is left of the budget, by its cost, is not begun.
    """

    def __init__(
        self,
        results: Path,
        at_once: int,
        budget_s: float | None,
        place: Launcher | None = None,
        fits: bool = False,
    ) -> None:
        self.results = results
        self.pool = Pool(at_once, self._over, self._known, place)
        self.started = time.monotonic()
        self.deadline = None if budget_s is None else self.started + budget_s
        self.codes: dict[PlannedRun, int] = {}
        self.reasons: dict[PlannedRun, str] = {}
        self.lacking: set[str] = set()
        self.fits, self._known_costs = fits, None
        self.too_long: list[PlannedRun] = []
        self.overview = Overview("reproduce")
        self._shown: dict[PlannedRun, Watched] = {}
        self._jobs: dict[child.Job, list[PlannedRun]] = {}

    def __call__(self, runs: list[PlannedRun]) -> None:
        """Do the runs in this order; afterwards `codes` has an exit code for each run that was started or refused.

        Those that are finished in their folders are recorded first, whatever time is left.
        """
        self._shown = {run: _watched(run) for run in runs}
        with signals.watched(program=True), Overview("reproduce", self._shown.values()) as self.overview:
            for run in runs:
                self._finish(run)
            left = [run for run in runs if run not in self.codes]
            self._jobs = {self._job(some): some for some in _together(left)}
            for ended in self.pool.run(list(self._jobs)):
                for job, code in ended:
                    for run, own in zip(self._jobs[job], job.codes(code), strict=True):
                        self._finish(run, own)

    def reason(self, run: PlannedRun) -> str:
        """Why a run failed: why it was refused, or the last line of its output."""
        log = next((job.log for job, runs in self._jobs.items() if run in runs), None)
        unsaid = "it was not started" if log is None else f"it printed nothing, see {log}"
        return self.reasons.get(run) or last_line(log) or unsaid

    def _over(self) -> bool:
        return signals.asked() is not None or (self.deadline is not None and time.monotonic() > self.deadline)

    def _job(self, runs: list[PlannedRun]) -> child.Job:
        first = runs[0].settings
        log = Path(first.run["runs_root"]) / ".reproduce" / f"{first.run_id}.log"
        return child.Job.of([run.settings for run in runs], log, first.run["timeout"])

    def _known(self, job: child.Job) -> int | None:
        """The exit code of a job that need not be started; None for one that must be, whose folders are written."""
        if all(final(folder / "record.json") for folder in job.runs):
            return 0
        if self._jobs[job][0].data in self.lacking:
            return DataError.exit_code
        if not self._has_time(self._jobs[job]):
            return Stopped.exit_code
        for run in self._jobs[job]:
            self.overview.begin(self._shown[run])
        return prepared(job, [_with_row(run) for run in self._jobs[job]])

    def _has_time(self, runs: list[PlannedRun]) -> bool:
        """Return True if runs fit into the time that is left; one that cannot be measured is let try."""
        if not self.fits or self.deadline is None:
            return True
        self._known_costs = self._known_costs or KnownCosts(self.results, Path(runs[0].settings.run["runs_root"]))
        try:
            longest = max(self._known_costs.of(run.settings).total_s for run in runs)
        except (ConfigError, DataError):
            return True
        fits = longest <= self.deadline - time.monotonic()
        self.too_long += [] if fits else runs
        return fits

    def _finish(self, run: PlannedRun, code: int | None = None) -> None:
        """Record a run that is finished; one that is not the one that is asked for is neither recorded nor done again.

        Args:
            run: the run.
            code: that of the process which did it; None where none was started, and then it may be left to do.
        """
        if code == DataError.exit_code:
            self.lacking.add(run.data)
        try:
            line = record_line(run.settings, run.table, run.job.preset, run.job.row)
        except (ConfigError, StorageError) as error:
            self.codes[run], self.reasons[run] = error.exit_code, str(error)
            self.overview.end(self._shown[run], "failed", str(error), good=False)
            return
        if line is not None:
            with records.locked(self.results, run.job.table):
                curves.add(
                    self.results, run.job.table, thinned_curves(run.settings, run.table, run.job.preset, run.job.row)
                )
                records.add(self.results, run.job.table, [line])
            self.codes[run] = 0  # recorded, and a diverged run is a result
        elif code is None:
            return
        else:
            self.codes[run] = code or Stopped.exit_code  # without a record another process works on it
        if run in self.too_long:
            return
        good, told = self.codes[run] == 0, outcome(self.codes[run])
        state = "done" if good else "stopped" if self.codes[run] == Stopped.exit_code else "failed"
        told = told if line is None else score(run.settings, line)
        told += f": {self.reason(run)}" if state == "failed" else ""
        value = None if line is None else _validation(run.settings, line)
        self.overview.end(self._shown[run], state, told, value, good)


def _watched(run: PlannedRun) -> Watched:
    """The run as it is shown while it is done."""
    columns = {"table": run.job.table, "row": run.job.row, "seed": str(run.job.seed)}
    return Watched(run.label, columns, run.settings.folder, steps(run.settings), run.cost)


def _with_row(run: PlannedRun) -> Settings:
    """The settings of a run, with the row of the table that it is."""
    return replace(run.settings, run=run.settings.run | {"cell": run.job.row})


def score(settings: Settings, line: records.Line) -> str:
    """The task's metric of a finished run as text, or the run's status where it has none."""
    metric = f"test/{settings.parts.task.metric}"
    value = line.metric(metric, "best_val")
    return line.values["status"] if value is None else f"{metric} {value:.4g}"


def _validation(settings: Settings, line: records.Line) -> float | None:
    return line.metric(f"val/{settings.parts.task.metric}", "best_val")


def _together(runs: list[PlannedRun]) -> list[list[PlannedRun]]:
    """The runs grouped by process: the seeds of a row where one program can train them, otherwise single runs."""
    rows: dict[tuple[str, str, str], list[PlannedRun]] = {}
    for run in runs:
        rows.setdefault(run.row if not run.timed else (run.settings.run_id, *run.row[:2]), []).append(run)
    return [[some[i] for i in group] for some in rows.values() for group in groups([run.settings for run in some])]


def reproduce(found: Plan, runner: Runner) -> int:
    """Do the runs of a plan and report the failures; returns 0 or the exit code of the first failure."""
    runs = found.runs
    rows = f", {len(found.refused)} rows cannot be built yet" if found.refused else ""
    say(f"{len(runs)} run{'s' * (len(runs) != 1)} to do, {found.recorded} recorded already{rows}")
    runner(runs)
    failed = {run: code for run, code in runner.codes.items() if code not in (0, Stopped.exit_code)}
    for run, code in failed.items():
        what = f"not run, needs {run.table.needs}" if _excused(run, code) else outcome(code)
        complain(f"{run.label}: {what}; {runner.reason(run)}")
    for row, reason in found.refused.items():
        complain(f"{row}: not run, {reason}")
    done = sum(code == 0 for code in runner.codes.values())
    left = len(runs) - done - len(failed)
    beyond = f", {len(runner.too_long)} of which are longer than the time that was left" if runner.too_long else ""
    say(f"{done} of {len(runs)} runs recorded, {len(failed)} failed, {left} left{beyond}" + (HINT if left else ""))
    if signals.asked() is not None:
        return Stopped.exit_code
    return exit_code([code for run, code in failed.items() if not _excused(run, code)])


def _excused(run: PlannedRun, code: int) -> bool:
    """Return True if a run failed for lack of data that, as its table says, not everyone has."""
    return code == DataError.exit_code and run.table.needs is not None


@dataclass
class Reproduction:
    """The runs of a selection, done until none is left that can be.

    Attributes:
        selection: what is to be run.
        about: words about the launcher.
        launcher: its name; None for that of the words, or for processes of this program.
        jobs: how many runs side by side; None for 1, or as many as the launcher's settings say.
        end: the time on the monotonic clock after which nothing is begun; None for none.
        fits: whether a run that does not fit into the time that is left is not begun either.
    """

    selection: Selection
    about: list[str] = field(default_factory=list)
    launcher: str | None = None
    jobs: int | None = None
    end: float | None = None
    fits: bool = False
    _place: Launcher | None = None

    def run(self, rows: list[ChosenRow] | None = None) -> int:
        """Do the runs, of these rows alone where some are given; returns 0 or the exit code of a failure."""
        code, failed = 0, set[tuple[str, int]]()  # cells of searched tables of which a run failed
        with signals.watched(program=True):
            while True:  # as what a table reports follows from its tuning or its search
                found = plan(self.selection)
                if rows is not None:
                    found.only((one.table, one.row) for one in rows)
                runner = self._runner(found)
                found.runs = [run for run in found.runs if (run.table.name, run.place) not in failed]
                found.first_cells(ENOUGH * runner.pool.at_once)
                code = reproduce(found, runner) or code
                wrong = {run for run, own in runner.codes.items() if own != 0}
                failed |= {(run.table.name, run.place) for run in wrong}
                goes_on = all(run.table.search and runner.codes[run] != Stopped.exit_code for run in wrong)
                if not (found.later and found.runs and goes_on and len(runner.codes) == len(found.runs)):
                    return code

    def _runner(self, found: Plan) -> "Runner":
        if found.runs and self._place is None:
            self._place = launcher_of(self.launcher, self.about, Path(found.runs[0].settings.run["runs_root"]))
        at_once = self._place.at_once if self.jobs is None and self._place is not None else max(self.jobs or 1, 1)
        left = None if self.end is None else self.end - time.monotonic()
        return Runner(self.selection.results, at_once, left, self._place, self.fits)
