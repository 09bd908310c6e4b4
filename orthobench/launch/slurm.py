"""Commands carried out by a Slurm cluster, in arrays that submitit submits.

What is submitted is written down beside the runs, in `<runs_root>/.slurm/<token>/`, with the names of its runs, so that
a driver that was killed finds what is queued or running when it is started again. Each of these folders holds the batch
script, the output of the tasks (`<array>_<index>_0_log.out`) and their exit codes; the output of a run itself is in the
log that its command names.
"""

import threading
import time
import uuid
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from orthobench.common.terminal import complain, say
from orthobench.errors import ConfigError, Stopped, not_installed
from orthobench.launch import slurm_queue
from orthobench.launch.remote import Surroundings
from orthobench.launch.slurm_task import SlurmTask
from orthobench.launch.workers import Command, WorkerLost
from orthobench.recording.files import read_json, write_json

LATER = ("job limit", "limit reached", "queue full", "temporarily", "submit", "unable to contact", "timed out")
WRONG = ("invalid", "not valid", "unrecognized", "unknown", "not available")
AGAIN_S = 5.0


class Slurm:
    """Gives commands to a Slurm cluster.

    Args:
        folder: where submissions are written down; nodes and submitting host share it.
        options: submitit's names and values of what each command asks for, such as `slurm_partition`.
        array: how many commands one array holds at most.
        requeues: how often a command is put back into the queue after its time limit.
        queued: how many commands it is given at the same time.
        poll_s: seconds between two looks at the queue.

    Raises:
        ConfigError: submitit is not installed, or this is no submitting host.
    """

    remote = True

    def __init__(
        self, folder: Path, options: dict[str, Any], array: int, requeues: int, queued: int, poll_s: float
    ) -> None:
        self.folder, self.options, self.array, self.requeues = folder.absolute(), options, array, requeues
        self.at_once, self.poll_s = queued, poll_s
        self.submitit = _import_submitit()
        slurm_queue.check()
        self.known: dict[str, SlurmWorker] | None = None
        self.waiting: list[SlurmWorker] = []
        self.open: list[SlurmWorker] = []
        self._size = array
        self._one, self._looked, self._wait_until = threading.Lock(), 0.0, 0.0
        self._submitter = ThreadPoolExecutor(1)
        self._sent: tuple[list[SlurmWorker], Future[str]] | None = None

    def submit(self, command: Command) -> "SlurmWorker":
        """Let a command be part of the next array, or find it in the queue."""
        with self._one:
            if self.known is None:
                self.known = self._adopt()
            worker = self.known.pop(command.name, None) or SlurmWorker(self)
            worker.command = command
            (self.open if worker.job else self.waiting).append(worker)
        return worker

    def look(self) -> None:
        """Submit what waits, and learn what has ended; not more often than every `poll_s` seconds."""
        with self._one:
            if time.monotonic() - self._looked < self.poll_s:
                return
            self._submit()
            stops = [worker.job for worker in self.open if worker.asked and not worker.told]
            slurm_queue.stop(stops)
            for worker in self.open:
                worker.told = worker.told or worker.asked
            queue = slurm_queue.queued() if self.open else {}
            if queue is not None:
                written = {path for folder in {worker.folder for worker in self.open} for path in folder.iterdir()}
                for worker in self.open:
                    worker.learn(queue, written)
                self.open = [worker for worker in self.open if worker.code is None and not worker.lost]
            self._looked = time.monotonic()

    def _submit(self) -> None:
        """Send the next array, in a thread, because a full queue lets sbatch wait for minutes."""
        for worker in [worker for worker in self.waiting if worker.asked]:
            worker.code = Stopped.exit_code
            self.waiting.remove(worker)
        if self._sent is not None and self._sent[1].done():
            sent, future = self._sent
            self._sent = None
            try:
                self._settle(sent, future)
            except Exception:
                for worker in sent:
                    worker.code = Stopped.exit_code  # it is in no queue, so that nobody waits for it
                raise
        if self._sent is None and self.waiting and time.monotonic() > self._wait_until:
            sent, self.waiting = self.waiting[: self._size], self.waiting[self._size :]
            token = uuid.uuid4().hex[:12]
            for index, worker in enumerate(sent):
                worker.folder, worker.index = self.folder / token, index
            self._sent = sent, self._submitter.submit(self._send, token, sent)

    def _settle(self, sent: list["SlurmWorker"], future: "Future[str]") -> None:
        """Take note of a submission, or of why there is none."""
        try:
            job = future.result()
        except self.submitit.core.utils.FailedJobError as error:
            reason = " ".join(str(error).split()).rpartition("error: ")[2][:300]
            told = reason.lower()
            if any(word in told for word in WRONG) or not any(word in told for word in LATER):
                raise ConfigError(f"sbatch refuses: {reason}; see the settings of hydra.launcher.") from error
            self.waiting = [*sent, *self.waiting]
            self._size = max(len(sent) // 2, 1)
            self._wait_until = time.monotonic() + max(self.poll_s, AGAIN_S if len(sent) == 1 else 0.0)
            complain(
                f"orthobench: Slurm takes no array of {len(sent)} now ({reason}); {len(self.waiting)} runs wait here"
            )
            return
        self._size = min(2 * self._size, self.array)
        for worker in sent:
            worker.job = f"{job}_{worker.index}" if len(sent) > 1 else job
        self.open += sent
        say(f"Slurm job {job}: {len(sent)} runs")

    def _send(self, token: str, sent: list["SlurmWorker"]) -> str:
        """Submit an array; returns its id. Its name is written down before, and its id afterwards."""
        folder, commands = self.folder / token, [worker.command for worker in sent]
        folder.mkdir(parents=True)
        listed = {"runs": [command.name for command in commands], "job": None}
        write_json(folder / "array.json", listed)
        executor = self.submitit.SlurmExecutor(folder, max_num_timeout=self.requeues)
        executor.update_parameters(**self.options, job_name=f"orthobench-{token}")
        here = Surroundings.of_this_process()
        tasks = [SlurmTask(command, here, folder / f"{index}.json") for index, command in enumerate(commands)]
        with executor.batch():
            jobs = [executor.submit(task) for task in tasks]
        job = str(jobs[0].job_id).partition("_")[0]
        write_json(folder / "array.json", {**listed, "job": job})
        return job

    def _adopt(self) -> dict[str, "SlurmWorker"]:
        """Jobs of earlier submissions that are queued or running, by the name of their run."""
        listed = {path.parent: read_json(path) or {} for path in self.folder.glob("*/array.json")}
        queue = slurm_queue.queued() if listed else {}
        while queue is None:  # a second submission would be worse than waiting
            complain("orthobench: Slurm does not answer; what it has of these runs is not known yet")
            time.sleep(AGAIN_S)
            queue = slurm_queue.queued()
        arrays = {name.removeprefix("orthobench-"): job.partition("_")[0] for job, (_, name) in queue.items()}
        found = {}
        for folder, one in listed.items():
            job, names = one.get("job") or arrays.get(folder.name), one.get("runs") or []
            for index, name in enumerate(names if job else ()):
                worker = SlurmWorker(self)
                worker.folder, worker.index = folder, index
                worker.job = f"{job}_{index}" if len(names) > 1 else str(job)
                if worker.job in queue:
                    found[name] = worker
        if found:
            say(f"{len(found)} runs are in Slurm's queue already")
        return found


class SlurmWorker:
    """A command that waits here, or is a task of an array.

    Attributes:
        job: Slurm's id of it; empty while it waits here.
        folder: of its submission.
        index: its place in the array.
        asked, told: whether it is to stop, and whether Slurm knows.
    """

    def __init__(self, launcher: Slurm) -> None:
        self.launcher, self.job, self.folder, self.index = launcher, "", Path(), 0
        self.command: Command
        self.asked = self.told = self.lost = False
        self.code: int | None = None
        self._missed = 0

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while it runs or waits.

        Raises:
            WorkerLost: it is in the queue no longer, and has left no exit code.
        """
        self.launcher.look()
        if self.lost:
            raise WorkerLost
        return self.code

    def cancel(self) -> None:
        """Ask it to stop; one that has not begun never does."""
        self.asked = True

    def kill(self) -> None:
        """Let Slurm end it."""
        if self.job:
            slurm_queue.end([self.job])

    def learn(self, queue: dict[str, tuple[str, str]], written: set[Path]) -> None:
        """Learn from the queue and the files of its submission whether it has ended, and how.

        A job that stopped may be in the queue again, so that its exit code counts only when it is not there; one that
        is missed once may have ended since that look.
        """
        path = self.folder / f"{self.index}.json"
        code = (read_json(path) or {}).get("code") if path in written else None
        if code is not None and (code != Stopped.exit_code or self.job not in queue):
            self.code = int(code)
        elif self.job not in queue:
            self._missed += 1
            if self._missed > 1:
                gone = slurm_queue.state(self.job)
                self.code = Stopped.exit_code if self.asked or gone == "CANCELLED" else None
                self.lost = self.code is None
        else:
            self._missed = 0


def _import_submitit() -> Any:
    try:
        import submitit  # pyright: ignore[reportMissingImports]
        import submitit.core.utils  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise not_installed("the Slurm launcher", "slurm") from error
    return submitit
