"""Launchers of the commands of many runs: the interface of every launcher, and one process for each
command.

A launcher starts a command somewhere and gives a worker, which is looked at again and again until the command has
ended. All that differs between this machine, a fork server and a cluster's queue is in these few functions.
"""

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from orthobench.common import signals, system


class WorkerLost(Exception):
    """Nobody knows any more how a command ended.

    It has ended, though, and no run is harmed by it: the same command given again resumes its run, or finds it finished
    and ends with its exit code.
    """


@dataclass(frozen=True)
class Command:
    """Program to carry out: `python -m MODULE WORD ...`.

    Attributes:
        module: the package whose `__main__` is run.
        words: the command line.
        log: the file that its output is appended to; None for the terminal.
        name: the id of its run, by which a launcher knows it again after this process has been killed.
        folder: the folder of its run; None for several.
        timeout: seconds that it may take from its beginning; None for no limit.
        fork: whether a fork server may start it; otherwise it is a new interpreter.
        tied: whether it is to stop, with its state saved, when the process that started it dies.
        variables: further variables of its environment.
    """

    module: str
    words: list[str]
    log: Path | None
    name: str = ""
    folder: Path | None = None
    timeout: float | None = None
    fork: bool = False
    tied: bool = False
    variables: dict[str, str] = field(default_factory=dict)


def environment(command: Command) -> dict[str, str]:
    """The environment of a command's process."""
    return {**os.environ, **command.variables, **({signals.TIED: str(os.getpid())} if command.tied else {})}


class Worker(Protocol):
    """A command that was started."""

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while it runs.

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
    """A place where commands are carried out.

    Attributes:
        at_once: how many commands it is given at the same time.
        remote: whether a command may have to wait for its turn, so that its time is kept where it is carried out.
    """

    at_once: int
    remote: bool

    def submit(self, command: Command) -> Worker:
        """Start a command, or put it in a queue; one of this name that is in the queue already is not put there again.

        Raises:
            ConfigError: the launcher refuses it for a reason that a user can correct.
        """
        ...


class Subprocesses:
    """Starts a new interpreter for each command, in a session of its own."""

    at_once, remote = 1, False

    def submit(self, command: Command) -> "Subprocess":
        """Start a command."""
        words, given = [sys.executable, "-m", command.module, *command.words], environment(command)
        if command.log is None:
            return Subprocess(subprocess.Popen(words, start_new_session=True, env=given))
        with command.log.open("ab") as log:
            return Subprocess(
                subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT, start_new_session=True, env=given)
            )


class Subprocess:
    """A child process of this one."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        return self.process.poll()

    def cancel(self) -> None:
        """Ask it to stop."""
        self.process.terminate()

    def kill(self) -> None:
        """Kill the process and all its children."""
        system.kill_group(self.process)
