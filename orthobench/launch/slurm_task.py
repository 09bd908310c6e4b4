"""Task of a Slurm array: one command, put back into the queue where time or another job ends it early."""

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from typing import Any

from orthobench.errors import Stopped
from orthobench.launch import slurm_queue
from orthobench.launch.remote import LOOK_S, Surroundings, carry_out
from orthobench.launch.workers import Command
from orthobench.recording.files import write_json

END_S = 60.0


class SlurmTask:
    """Command of an array, which submitit calls on a node.

    Args:
        command: the command.
        surroundings: what it needs of the process that submitted it.
        outcome: the file for its exit code, in a folder that the node and the submitting host share.
    """

    def __init__(self, command: Command, surroundings: Surroundings, outcome: Path) -> None:
        self.command = replace(command, fork=False)  # this process starts one child only
        self.surroundings, self.outcome = surroundings, outcome
        self.asked: int | None = None
        self.code: int | None = None

    def __call__(self) -> int:
        """Carry it out; returns the exit code, which is in the file too.

        SIGUSR1 is the driver's wish that it stops. SIGTERM is Slurm's: of a job that has been cancelled, or of one
        that has to make room and is put back into the queue.
        """
        self.outcome.unlink(missing_ok=True)
        self.surroundings.enter()
        for number in (signal.SIGUSR1, signal.SIGTERM):
            signal.signal(number, self._note)
        with ThreadPoolExecutor(1) as pool:
            self.future = pool.submit(carry_out, self.command, lambda: self.asked is not None, _name())
            while not self.future.done():
                wait([self.future], LOOK_S)
            self.code = self.future.result()
        if self.asked == signal.SIGTERM and self.code == Stopped.exit_code and self._makes_room():
            time.sleep(END_S)  # Slurm ends this process
        write_json(self.outcome, {"code": self.code})
        return self.code

    def checkpoint(self) -> Any:
        """On SIGUSR2, before the time limit or where room is needed: what submitit puts into the queue; None for none.

        The command has ended by then, with its state saved.
        """
        from submitit.helpers import DelayedSubmission  # pyright: ignore[reportMissingImports]

        self.asked = signal.SIGUSR2
        wait([self.future], END_S)
        if self.future.done() and self.future.result() != Stopped.exit_code:
            write_json(self.outcome, {"code": self.future.result()})
            return None
        return DelayedSubmission(SlurmTask(self.command, self.surroundings, self.outcome))

    def _note(self, number: int, frame: Any) -> None:
        self.asked = number

    def _makes_room(self) -> bool:
        """Return True if this job was asked to end though nobody has cancelled it; it is put back into the queue."""
        job = _id()
        return slurm_queue.state(job) == "RUNNING" and slurm_queue.requeue(job)


def _id() -> str:
    array = os.environ.get("SLURM_ARRAY_JOB_ID")
    return f"{array}_{os.environ['SLURM_ARRAY_TASK_ID']}" if array else os.environ["SLURM_JOB_ID"]


def _name() -> str:
    again = os.environ.get("SLURM_RESTART_COUNT", "0")
    return f"Slurm job {_id()}" + (f", started again {again} times" if again != "0" else "")
