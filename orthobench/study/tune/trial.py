"""Trial of a tuning: an ordinary run in a process of its own, whose validation curve is followed and may end it."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

from orthobench.common import signals, system
from orthobench.common.terminal import say
from orthobench.errors import Stopped, StorageError
from orthobench.launch.processes import Job, Process, end, exit_code, outcome, prepared
from orthobench.launch.workers import Launcher
from orthobench.recording.claim import Claim, awaited, is_held, owner_of
from orthobench.recording.curve import SEAL, Curve, sealed
from orthobench.recording.digest import final, read_sealed, write_sealed
from orthobench.study.sweep_run import SweepRun

LOOK_S = 0.1
LOSSES = 3  # at one step, before a run is given up that its processes leave unfinished without an error of their own
LOST = (0, system.KILLED, Stopped.exit_code)
Report = Callable[[int, float], bool]


@dataclass(frozen=True)
class Outcome:
    """Outcome of a trial.

    Attributes:
        status: `done`, `diverged`, `pruned`, `failed`, `refused`, or `stopped` where a signal asked for it.
        reason: why, where it is not done.
        value: the validation score of the best weights, where it is done.
        code: the exit code of the run's process, where it failed with one.
    """

    status: str
    reason: str = ""
    value: float | None = None
    code: int = 0


@dataclass(frozen=True)
class TrialRun:
    """The run of a trial.

    Attributes:
        run: the run.
        score: the validation score, as `val/NAME`.
        log: the file for its output.
        place: where it runs; this machine when None.
    """

    run: SweepRun
    score: str
    log: Path
    place: Launcher | None = None


def follow(trial: TrialRun, report: Report) -> Outcome:
    """Start or resume the run, or wait for it where another process has it, until it has ended.

    One that is killed or stops by itself is resumed; where that happens thrice without a further step, it has failed.

    Args:
        trial: its run.
        report: is given each point of the validation curve, and tells whether the run is to be pruned there.
    """
    points = _Points(trial, report)
    losses, furthest, told = 0, -1, False
    while (found := _ended(trial)) is None:
        if signals.asked() is not None:
            return Outcome("stopped")
        if is_held(trial.run.folder):  # its process outlived the one that started it, or somebody else runs it
            if not told:
                say(awaited(trial.run.folder) or f"{trial.run.folder} is at work by {owner_of(trial.run.folder)}; "
                    "waiting for its end.")  # fmt: skip
            told = True
            points.read()
            time.sleep(LOOK_S)
            continue
        code = _attempt(trial, points)
        if _ended(trial) is not None:  # also where the wish to prune it came while its process was ending
            continue
        if points.pruned_at is not None:
            return Outcome("pruned", _write_pruned(trial, points.pruned_at))
        if signals.asked() is not None:
            continue
        if code not in LOST:
            return Outcome("failed", f"{outcome(code)}; see {trial.log}", code=exit_code([code]))
        step = points.step()
        losses, furthest = (losses + 1, furthest) if step <= furthest else (1, step)
        if losses == LOSSES:
            why = outcome(code) if code < 0 else "its process ended unfinished"
            return Outcome("failed", f"{why}, {LOSSES} times after step {furthest:,}; see {trial.log}")
    points.read(to_the_end=True)
    return found


class _Points:
    """Reads the validation curve of a run as it grows.

    Attributes:
        pruned_at: the step at which the run is pruned; None while it is not.
    """

    def __init__(self, trial: TrialRun, report: Report) -> None:
        self.curve, self.score, self.report = Curve(trial.run.folder / "metrics.csv"), trial.score, report
        self.pruned_at: int | None = None
        self._size, self._step = -1, -1

    def read(self, to_the_end: bool = False) -> bool:
        """Report the points that are new; whether the run is to be pruned. `to_the_end`: it is over, and cannot be."""
        path = self.curve.path
        size = path.stat().st_size if path.is_file() else 0
        if size != self._size and (self.pruned_at is None or to_the_end):
            self._size = size
            for step, value in self.curve.of(self.score):
                if step > self._step and isfinite(value):
                    self._step = int(step)
                    if self.report(self._step, value) and not to_the_end:
                        self.pruned_at = self._step
                        break
        return self.pruned_at is not None

    def step(self) -> int:
        """The last step that the run is known to have made."""
        record = read_sealed(self.curve.path.with_name("record.json")) or {}
        return max([record.get("steps") or 0, *(row["step"] for row in self.curve.rows())])


def _attempt(trial: TrialRun, points: _Points) -> int:
    """Run one process to its end; it is asked to stop where the run is pruned, or a signal asked for it.

    It is ended first where this fails, as the study may that the points are told to.
    """
    settings = trial.run.settings
    job = Job.of([settings], trial.log, settings.run["timeout"])
    if (refused := prepared(job, [settings])) is not None:
        return refused
    process = Process(job.command(), trial.place)
    try:
        while (code := process.poll(points.read() or signals.asked() is not None)) is None:
            time.sleep(LOOK_S)
    finally:
        end([process])
    return code


def _ended(trial: TrialRun) -> Outcome | None:
    """The outcome of a finished run; None where it is not finished."""
    record = final(trial.run.folder / "record.json")
    if record is None or record.get("identity") not in (None, trial.run.settings.digest):
        return None
    if stale := trial.run.stale(record):
        return Outcome("failed", stale, code=2)
    if record["status"] == "diverged":
        return Outcome("diverged", str(record["reason"]))
    try:
        if record.get(SEAL) is not None:
            sealed(trial.run.folder, record)
    except StorageError as error:
        return Outcome("failed", str(error), code=error.exit_code)
    value = ((record.get("metrics") or {}).get("best_val") or {}).get(trial.score)
    return (
        Outcome("failed", f"its record has no {trial.score}", code=2) if value is None else Outcome("done", value=value)
    )


def _write_pruned(trial: TrialRun, step: int) -> str:
    """Write into the record of the stopped run why it was stopped; returns that."""
    reason = f"pruned by its validation score at step {step:,}"
    path = trial.run.folder / "record.json"
    with Claim(trial.run.folder) as claim:
        record = read_sealed(path)
        if claim.held and record is not None and record.get("status") == "stopped":
            write_sealed(path, record | {"reason": f"{reason}; the same command resumes the run."})
    return reason
