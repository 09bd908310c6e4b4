"""Running published tables: every cell in a process of its own, cheapest first, each recorded as soon as it is done.

What is recorded already is skipped, what is finished under runs/ is only recorded, what was stopped goes on.
"""

import contextlib
import re
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from orthobench import experiment, signals
from orthobench.child import GRACE_S, outcome
from orthobench.composer import Composer
from orthobench.errors import ConfigError, DataError, Stopped
from orthobench.experiment import Job, Table
from orthobench.recording.sealed import final
from orthobench.report import curves, records
from orthobench.report.collect import collect, cost, drawn
from orthobench.report.published import PAPERS
from orthobench.schema import did_you_mean
from orthobench.settings import Settings
from orthobench.terminal import complain, duration_text, say

TICK_S = 0.1
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True, eq=False)
class Run:
    """One run to do.

    Attributes:
        cost: arithmetic of its training, in no unit; orders runs.
    """

    job: Job
    settings: Settings
    cost: float

    @property
    def label(self) -> str:
        """What a person knows it by."""
        preset = "" if self.job.preset == experiment.FULL else f" ({self.job.preset})"
        return f"{self.job.table} {self.job.cell} seed {self.job.seed}{preset}"

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


def select(names: Iterable[str]) -> list[str]:
    """Tables by name, by paper, or `all`.

    Raises:
        ConfigError: none of these.
    """
    known, found = experiment.tables(), []
    for name in names:
        chosen = known if name == "all" else [t for t in known if t == name or t.startswith(f"{name}/")]
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
    seeds: list[int] | None = None,
    cells: list[str] | None = None,
    extra: tuple[str, ...] = (),
    folders: tuple[Path, ...] = (),
) -> tuple[Plan, Path]:
    """What a call has to do, and the results folder.

    Raises:
        ConfigError: no such preset or cell, or an extra word that changes the numbers.
    """
    composer, found, results = Composer(folders), Plan(), Path("results")
    for name in tables:
        table = experiment.load(name, folders)
        known: dict[Path, set[tuple[str, str, str]]] = {}
        for cell in table.cells if cells is None else cells:
            jobs = table.jobs(preset, seeds, [cell])
            try:
                _refuse_changes(composer, jobs[0], extra)
                settings = [composer.settings([*job.overrides, *extra]) for job in jobs]
            except ConfigError as error:
                if not _waits_for_a_model(table.cell(cell), folders):
                    raise
                found.refused[f"{name} {cell}"] = str(error)
                continue
            results = Path(settings[0].run["results_root"])
            if results not in known:
                known[results] = {(line.run_id, line.preset, line.cell) for line in records.read(results, name)}
            price = cost(settings[0])
            for job, one in zip(jobs, settings, strict=True):
                if (one.run_id, job.preset, job.cell) in known[results]:
                    found.recorded += 1
                else:
                    found.runs.append(Run(job, one, price))
    found.runs.sort(key=lambda run: run.cost)
    return found, results


def _waits_for_a_model(overrides: Iterable[str], folders: tuple[Path, ...]) -> bool:
    """Whether a cell names a model or task that there is not."""
    from orthobench.config import options

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
        self.results, self.at_once, self.extra = results, at_once, extra
        self.options = [option for folder in folders for option in ("--config-dir", str(folder))]
        self.started = time.monotonic()
        self.deadline = None if budget_s is None else self.started + budget_s
        self.codes: dict[Run, int] = {}
        self.working: dict[subprocess.Popen[bytes], Run] = {}
        self.lacking: set[str] = set()

    def __call__(self, runs: list[Run]) -> None:
        """Run them in this order; `codes` then has an exit code for each that was started."""
        waiting, total = list(runs), len(runs)
        with signals.watched(program=True):
            while waiting or self.working:
                if self._over():
                    waiting = []
                    self._stop()
                busy = {run.settings.run_id for run in self.working.values()}  # a run may belong to several tables
                free = [run for run in waiting if run.settings.run_id not in busy]
                if free and len(self.working) < self.at_once:
                    waiting.remove(free[0])
                    self._start(free[0])
                self._reap()
                self._show(total)
                if self.working and not (free and len(self.working) < self.at_once):
                    time.sleep(TICK_S)
        self._show(total, last=True)

    def _over(self) -> bool:
        return signals.asked() is not None or (self.deadline is not None and time.monotonic() > self.deadline)

    def _start(self, run: Run) -> None:
        if final(run.settings.folder / "record.json"):
            self._finish(run, 0)
            return
        if run.data in self.lacking:
            self._finish(run, DataError.exit_code)
            return
        words = [*run.job.overrides, f"cell={run.job.cell}", *self.extra]
        log = self.log(run)
        log.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "orthobench", *self.options, *words]
        with log.open("wb") as file:
            process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, start_new_session=True)
        self.working[process] = run

    def _reap(self) -> None:
        for process, run in list(self.working.items()):
            code = process.poll()
            if code is not None:
                del self.working[process]
                self._finish(run, code)

    def _stop(self) -> None:
        """Ask the children to stop, which they can resume from, and wait for them."""
        for process in self.working:
            process.terminate()
        limit = time.monotonic() + GRACE_S
        while self.working and time.monotonic() < limit:
            self._reap()
            time.sleep(TICK_S)
        for process in self.working:
            process.kill()

    def _finish(self, run: Run, code: int) -> None:
        self.codes[run] = code
        if code == DataError.exit_code:
            self.lacking.add(run.data)
        line = collect(run.settings, run.job.table, run.job.preset, run.job.cell)
        if line is not None:
            records.add(self.results, run.job.table, [line])
            curves.add(self.results, run.job.table, drawn(run.settings, run.job.table, run.job.preset, run.job.cell))
            self.codes[run] = 0  # recorded, and a diverged run is a result
        elif code == 0:
            self.codes[run] = Stopped.exit_code  # another process has it
        if not sys.stdout.isatty():
            say(f"[{len(self.codes)}] {run.label}: {outcome(self.codes[run])}")

    def log(self, run: Run) -> Path:
        """What a run said."""
        return Path(run.settings.run["runs_root"]) / ".reproduce" / f"{run.settings.run_id}.log"

    def _show(self, total: int, last: bool = False) -> None:
        """One line that is written over, on a terminal only."""
        if not sys.stdout.isatty():
            return
        spent = duration_text(time.monotonic() - self.started)
        now = ", ".join(f"{run.job.table} {run.job.cell} {run.job.seed}" for run in self.working.values())
        text = f"{len(self.codes)} of {total} in {spent}" + (f": {now}" if now else "")
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.write(f"\r\x1b[2K{text[:118]}" + ("\n" if last else ""))
            sys.stdout.flush()


def reproduce(found: Plan, runner: Runner, tables: list[Table]) -> int:
    """Do what a plan says, tell what failed, and return 0 or the code of the first failure."""
    runs = found.runs
    say(f"{len(runs)} runs to do, {found.recorded} recorded already, {len(found.refused)} cells cannot be built yet")
    runner(runs)
    needs = {table.name: table.needs for table in tables if table.needs}
    failed = {run: code for run, code in runner.codes.items() if code not in (0, Stopped.exit_code)}
    for run, code in failed.items():
        what = f"not run, needs {needs[run.job.table]}" if _excused(run, code, needs) else outcome(code)
        complain(f"{run.label}: {what}; {_last_line(runner.log(run))}")
    for cell, reason in found.refused.items():
        complain(f"{cell}: not run, {reason}")
    done = sum(code == 0 for code in runner.codes.values())
    left = len(runs) - done - len(failed)
    say(f"{done} of {len(runs)} runs recorded, {len(failed)} failed, {left} left" + (HINT if left else ""))
    if signals.asked() is not None:
        return Stopped.exit_code
    codes = [code for run, code in failed.items() if not _excused(run, code, needs)]
    return 0 if not codes else codes[0] if codes[0] > 0 else 128 - codes[0]


HINT = "; the same command goes on"


def _excused(run: Run, code: int, needs: dict[str, str]) -> bool:
    """Whether it lacks data that the table says not everyone has."""
    return code == DataError.exit_code and run.job.table in needs


def _last_line(log: Path) -> str:
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except OSError:
        return "the same data is missing as above"
    return lines[-1] if lines else f"nothing was said; {log}"
