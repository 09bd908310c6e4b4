"""Run a command on a worker of a cluster, as the child process that this machine would have started.

It knows the child's exit code, asks it to stop when it is asked itself, keeps its time limit, and waits for the end of
an earlier attempt at the same run that lost its worker.
"""

import os
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from orthobench.common import signals
from orthobench.common.paths import variable
from orthobench.config.policy import ENVIRONMENT
from orthobench.errors import Stopped
from orthobench.launch.processes import Process
from orthobench.launch.workers import Command
from orthobench.recording.claim import is_held, owner_of

LOOK_S = 0.1
PATIENCE_S = 120.0
GIVEN = ("ORTHOBENCH_", "OMP_", "MKL_", "WANDB_", "PYTHONPATH")


@dataclass(frozen=True)
class Surroundings:
    """Surroundings that a command needs of the process that gave it.

    Attributes:
        folder: the working folder, by which relative paths are meant.
        environment: variables that orthobench and the libraries of a run read; a worker keeps its own for all else.
    """

    folder: str
    environment: dict[str, str]

    @classmethod
    def of_this_process(cls) -> "Surroundings":
        """Those of this process."""
        given = {name: value for name, value in os.environ.items() if name.startswith(GIVEN)}
        given |= {name: variable(name) or "" for name in ENVIRONMENT if name in given}  # a worker has other variables
        return cls(str(Path.cwd()), given)

    def enter(self) -> None:
        """Let this process have them."""
        for name in [name for name in os.environ if name.startswith(GIVEN) and name not in self.environment]:
            del os.environ[name]
        os.environ.update(self.environment)
        os.chdir(self.folder)


def carry_out(command: Command, stopping: Callable[[], bool], where: str) -> int:
    """Start a command and wait for its end.

    Args:
        command: the command.
        stopping: tells whether it is to stop, with its state saved.
        where: the worker in words, such as `Slurm job 12_3`, for its log.

    Returns:
        Its exit code, negative for a signal.
    """
    _note(command, f"# {where} on {socket.gethostname()}")
    code = _attempt(command, stopping)
    end = time.monotonic() + PATIENCE_S
    if code == Stopped.exit_code and command.folder is not None and _is_elsewhere(command):
        _note(command, f"waiting {PATIENCE_S:.0f} s at most for the end of {owner_of(command.folder)}")
    while code == Stopped.exit_code and not stopping() and _is_elsewhere(command) and time.monotonic() < end:
        while _is_elsewhere(command) and not stopping() and time.monotonic() < end:
            time.sleep(LOOK_S)
        if not _is_elsewhere(command) and not stopping():
            code = _attempt(command, stopping)
    return code


def _note(command: Command, text: str) -> None:
    """Write a line with the time into a command's log."""
    if command.log is not None:
        command.log.parent.mkdir(parents=True, exist_ok=True)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        with command.log.open("a", encoding="utf-8") as log:
            log.write(f"{text}, {now}\n")


def _attempt(command: Command, stopping: Callable[[], bool]) -> int:
    process = Process(replace(command, tied=True))
    while (code := process.poll(stopping())) is None:
        time.sleep(LOOK_S)
    early = code < 0 and -code in signals.SIGNALS  # it was asked to stop before it could take note
    return Stopped.exit_code if early else code


def _is_elsewhere(command: Command) -> bool:
    """Return True if another process works on the run: an earlier attempt that has not ended yet, or
    somebody else's.
    """
    return command.folder is not None and is_held(command.folder)
