"""Child processes of the program: starting several at a time, watching them, and stopping late or unwanted ones."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from orthobench.common import signals, system
from orthobench.common.paths import absolute
from orthobench.common.terminal import complain, say
from orthobench.config.settings import Settings
from orthobench.errors import OrthobenchError, Stopped, StorageError, code_of
from orthobench.launch.local import Local
from orthobench.launch.workers import Command, Launcher, Worker, WorkerLost
from orthobench.recording.claim import awaited, is_held
from orthobench.recording.digest import final
from orthobench.recording.files import write_bytes
from orthobench.recording.run_folder import begin

GRACE_S = 30.0
TICK_S = 0.05
TIMED_OUT = 124
NO_RECORD = 1
LOSSES = 5  # of one command; a run that ends its node again and again must not do so for ever


@dataclass(frozen=True, eq=False)
class Job:
    """The work of one process: a run, or the members of an ensemble.

    Attributes:
        runs: the folder of each run, which holds its config.yaml when the job is started.
        log: the file for its output; None for the terminal.
        timeout: seconds that it may take; None for no limit.
        fork: whether a fork server may start it; otherwise it is a new interpreter.
        data_root: where its data are, which another place in the environment does not replace; None where that may.
    """

    runs: list[Path]
    log: Path | None
    timeout: float | None = None
    fork: bool = False
    data_root: str | None = None

    @classmethod
    def of(cls, runs: list[Settings], log: Path | None, timeout: float | None = None) -> "Job":
        """The job of some runs, with what the first one's settings say of processes."""
        first = runs[0].run
        return cls([one.folder for one in runs], log, timeout, first["fork"], absolute(first["data_root"]))

    def command(self) -> Command:
        """The program that does it."""
        words, first, others = (
            [absolute(str(folder)) for folder in self.runs],
            self.runs[0],
            len(self.runs) - 1,
        )
        data = {} if self.data_root is None else {"ORTHOBENCH_DATA": self.data_root.replace("$", "$$")}
        rest = {"timeout": self.timeout, "fork": self.fork, "variables": data}
        if not others:
            return Command("orthobench.run", words, self.log, first.name, first, **rest)
        return Command("orthobench.ensemble", words, self.log, f"{first.name}+{others}", **rest)

    def codes(self, code: int) -> list[int]:
        """An exit code for each run when the process has ended with `code`; those of an ensemble are in the records."""
        return [_code(folder, code, len(self.runs) > 1) for folder in self.runs]


class Pool:
    """Runs jobs, each in its own process.

    Args:
        at_once: how many jobs run at the same time; two jobs with a run in common never do.
        stopping: tells whether all processes are to stop; they can be resumed.
        prepare: writes the folders of a job whose turn it is; gives its exit code where it need not be started.
        place: where they run; this machine when None.

    Raises:
        ConfigError: there are fewer GPUs than jobs at the same time, each of which is to have one for itself.
    """

    def __init__(
        self,
        at_once: int,
        stopping: Callable[[], bool],
        prepare: Callable[[Job], int | None] = lambda job: None,
        place: Launcher | None = None,
    ) -> None:
        self.at_once, self.stopping, self.prepare = at_once, stopping, prepare
        self.place = place or Local()
        if isinstance(self.place, Local):
            self.place.refuse(at_once)
        self.working: dict[Job, Process] = {}

    def run(self, jobs: list[Job]) -> Iterator[list[tuple[Job, int]]]:
        """Run the jobs in this order; yields repeatedly the jobs that have ended since the last time, with exit codes.

        Jobs that were not started because everything is to stop are never yielded. Where this fails, or its user does
        and closes it, the processes that are at work are ended first.
        """
        try:
            yield from self._run(jobs)
        finally:
            end(self.working.values())
            self.working = {}

    def _run(self, jobs: list[Job]) -> Iterator[list[tuple[Job, int]]]:
        waiting = list(jobs)
        while waiting or self.working:
            stopping = self.stopping()
            waiting = [] if stopping else waiting
            found = ((job, process.poll(stopping)) for job, process in self.working.items())
            ended = [(job, code) for job, code in found if code is not None]
            self.working = {job: process for job, process in self.working.items() if process.code is None}
            busy = {folder for job in self.working for folder in job.runs}
            free = [job for job in waiting if busy.isdisjoint(job.runs)] if len(self.working) < self.at_once else []
            begun = set()
            for job in free:
                if len(self.working) >= self.at_once or not busy.isdisjoint(job.runs):
                    break
                begun.add(job)
                code = self.prepare(job)
                if code is None:
                    if job.log is not None:  # which nobody reads meanwhile
                        _tell_what_is_awaited(job.runs)
                    self.working[job] = Process(job.command(), self.place)
                    busy |= set(job.runs)
                else:
                    ended.append((job, code))
            waiting = [job for job in waiting if job not in begun] if begun else waiting
            yield ended
            if self.working:
                time.sleep(TICK_S)


class Process:
    """The process of a command.

    Args:
        command: the command.
        place: where it runs; this machine when None.

    Attributes:
        code: its exit code, negative for a signal; None while it runs.

    Raises:
        ConfigError: the launcher refuses it for a reason that a user can correct.
        StorageError: its log cannot be written.
    """

    def __init__(self, command: Command, place: Launcher | None = None) -> None:
        self.command, self.place = command, place or Local()
        self.code, self.late, self.killed, self.losses = None, False, False, 0
        self.started, self.asked_at = time.monotonic(), None
        if command.log is not None and not self.place.remote:  # there one that is at work already may be writing it
            try:
                command.log.parent.mkdir(parents=True, exist_ok=True)
                if not command.tied:
                    command.log.write_bytes(b"")
            except OSError as error:
                raise StorageError(f"{command.log} cannot be written: {error.strerror}; set runs_root=.") from error
        self.worker = self._submit()

    def poll(self, stopping: bool) -> int | None:
        """The exit code, None while it runs; a process that is late or to stop is asked to stop, and later killed."""
        code, now = self._look(stopping), time.monotonic()
        if code is not None:
            early = self.asked_at is not None and -code in signals.SIGNALS  # before it could take note of the signal
            self.code = TIMED_OUT if self.late else Stopped.exit_code if early else code
        elif self.asked_at is None:
            timeout = None if self.place.remote else self.command.timeout
            self.late = timeout is not None and now - self.started > timeout
            if self.late or stopping:
                self.ask()
        else:
            self.press()
        return self.code

    def ask(self) -> None:
        """Ask it to stop, unless it has been asked."""
        if self.asked_at is None:
            self.asked_at = time.monotonic()
            self.worker.cancel()

    def press(self) -> None:
        """Kill it, once, where it was asked to stop and has not in its time."""
        patience = 2 * GRACE_S if self.place.remote else GRACE_S
        if not self.killed and self.asked_at is not None and time.monotonic() - self.asked_at > patience:
            self.killed = True
            self.worker.kill()

    def _look(self, stopping: bool) -> int | None:
        """The exit code of the worker, None while it runs; a lost one's command is given again, or can be resumed."""
        try:
            return self.worker.poll()
        except WorkerLost:
            self.losses += 1
            if stopping or self.asked_at is not None or self.losses >= LOSSES:
                return Stopped.exit_code
            self.worker = self._submit()
            return None

    def _submit(self) -> Worker:
        worker = self.place.submit(self.command)
        if not self.place.remote:
            signals.children.add(worker)
        return worker


def end(processes: Iterable[Process]) -> None:
    """Let processes stop, and kill those that do not in their time, whatever fails; those that have ended are left."""
    left = [process for process in processes if process.code is None]
    for process in left:
        with suppress(Exception):
            process.ask()
    while left:
        for process in left:
            with suppress(Exception):
                process.poll(True)
            with suppress(Exception):
                process.press()
        left = [process for process in left if process.code is None and not process.killed]
        if left:
            time.sleep(TICK_S)


def prepared(job: Job, runs: Sequence[Settings]) -> int | None:
    """Write the folders of a job whose runs have these settings; None, or the exit code where one of them is refused.

    Why is the last line of the job's log, as of a process that is started and refuses it.

    Raises:
        StorageError: the log cannot be written.
    """
    try:
        for settings in runs:
            begin(settings)
    except OrthobenchError as error:
        if job.log is None:
            complain(f"orthobench: {error}")
        else:
            write_bytes(job.log, f"orthobench: {error}\n".encode())
        return error.exit_code
    return None


def last_line(log: Path | None) -> str:
    """The last line that a job has printed into its log; empty where there is none, or it printed nothing."""
    try:
        lines = [] if log is None else log.read_text(encoding="utf-8", errors="replace").strip().split("\n")
    except OSError:
        return ""
    return lines[-1] if lines else ""


def label(words: list[str]) -> str:
    """Overrides as their user would type them."""
    return " ".join(word.lstrip("+") for word in words)


def outcome(code: int) -> str:
    """An exit code in words."""
    if code == TIMED_OUT:
        return "took longer than timeout= allows; the same command resumes it"
    if code < 0:
        why = ", perhaps for want of memory" if code == system.KILLED else ""
        return f"killed by {signals.name(-code)}{why}"
    return {0: "done", Stopped.exit_code: "stopped; the same command resumes it"}.get(code, f"exit code {code}")


def exit_code(codes: list[int]) -> int:
    """The exit code of many jobs: that of the first that failed; a job that was ended from outside can be resumed."""
    failed = [code for code in codes if code]
    if not failed:
        return 0
    if failed[0] in (TIMED_OUT, system.KILLED):
        return Stopped.exit_code
    return failed[0] if failed[0] > 0 else OrthobenchError.exit_code


def _tell_what_is_awaited(runs: list[Path]) -> None:
    for run in runs:
        if waiting := awaited(run):
            say(waiting)


def _code(folder: Path, code: int, member: bool) -> int:
    if code == Stopped.exit_code and is_held(folder):
        return 0  # it has no record yet, by which a sweep knows that it is not done
    if code and not member:
        return code
    record = final(folder / "record.json")
    if record is not None:
        return code_of(record["status"])
    if code == 0 and not is_held(folder):  # nor does another process work on it
        complain(f"{folder}: its process ended without a record")
        return NO_RECORD
    return code
