"""What carries out the commands of many runs: the interface of every launcher, and one process for each command.

A launcher starts a command somewhere and gives a worker, which is looked at again and again until the command has
ended. All that differs between this machine, a fork server and a cluster's queue is in these few functions.
"""

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


class WorkerLost(Exception):
    """Nobody knows any more how a command ended.

    It has ended, though, and no run is harmed by it: the same command given again resumes its run, or finds it finished
    and ends with its exit code.
    """


@dataclass(frozen=True)
class Command:
    """One program to carry out: `python -m MODULE WORD ...`.

    Attributes:
        module: the package whose `__main__` is run.
        words: the command line.
        log: the file that its output is appended to; null for the terminal.
    """

    module: str
    words: list[str]
    log: Path | None


class Worker(Protocol):
    """A command that was started."""

    def poll(self) -> int | None:
        """The exit code, negative for a signal; null while it runs.

        Raises:
            WorkerLost: it ended, but its exit code is unknown.
        """
        ...

    def cancel(self) -> None:
        """Ask it to save its state and stop."""
        ...

    def kill(self) -> None:
        """End it and all that it started, at once."""
        ...


class Launcher(Protocol):
    """A place where commands are carried out."""

    def submit(self, command: Command) -> Worker:
        """Start a command."""
        ...


class Subprocesses:
    """Starts a new interpreter for each command, in a session of its own."""

    def submit(self, command: Command) -> "Subprocess":
        """Start a command."""
        words = [sys.executable, "-m", command.module, *command.words]
        if command.log is None:
            return Subprocess(subprocess.Popen(words, start_new_session=True))
        with command.log.open("ab") as log:
            return Subprocess(subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT, start_new_session=True))


class Subprocess:
    """A child process of this one."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process

    def poll(self) -> int | None:
        """The exit code, negative for a signal; null while it runs."""
        return self.process.poll()

    def cancel(self) -> None:
        """Ask it to stop."""
        self.process.terminate()

    def kill(self) -> None:
        """Kill the process and all its children."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except OSError:
            self.process.kill()
