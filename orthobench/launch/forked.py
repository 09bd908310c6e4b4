"""Commands carried out by a fork server, so that each further run of a sweep need not import everything again."""

import atexit
import os
import select
import signal
import subprocess
import sys
import threading
import time
from functools import cache
from multiprocessing.connection import Pipe
from pathlib import Path
from typing import Any

from orthobench.common import signals
from orthobench.launch.forkserver import hear, tell
from orthobench.launch.workers import Command, Launcher, Subprocesses, Worker, WorkerLost, environment

PATIENCE_S = 300.0  # for imports from a slow disk
LOOK_S = 0.2
END_S = 10.0
SERVERS = 3


def launcher(fork: bool) -> Launcher:
    """Launcher of commands on this machine: this process's fork server if that is wanted and there is one."""
    return _forks(os.getpid()) if fork and _has_pidfd() else Subprocesses()


class Forks:
    """Lets a fork server start commands, and a new interpreter where the server refuses or is gone for good."""

    at_once, remote = 1, False

    def __init__(self) -> None:
        self.server: Server | None = None
        self.left = SERVERS
        self._one = threading.Lock()

    def submit(self, command: Command) -> Worker:
        """Start a command; a server that was killed is replaced."""
        with self._one:
            return self._submit(command)

    def _submit(self, command: Command) -> Worker:
        while self.server is not None or self.left > 0:
            try:
                if self.server is None:
                    self.left -= 1
                    self.server = Server()
                return ForkedWorker(self.server, self.server.start(command))
            except ServerRefuses:
                self.left = 0
                self._close()
            except (EOFError, OSError):
                self._close()
        return Subprocesses().submit(command)

    def _close(self) -> None:
        if self.server is not None:
            self.server.close()
            self.server = None


class ServerRefuses(Exception):
    """A fork server that says that its forks would not be what new processes are."""


class Server:
    """A fork server that this process has started.

    Raises:
        ServerRefuses: it will not fork, for example because there is CUDA.
        EOFError: it died.
    """

    def __init__(self) -> None:
        self._one = threading.Lock()  # tuning has several threads, and an answer belongs to one question
        self.connection, other = Pipe()
        command = [sys.executable, "-m", "orthobench.launch.forkserver", str(other.fileno())]
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # NumPy would start threads when it is imported
        with other:
            self.process = subprocess.Popen(command, env=environment, pass_fds=[other.fileno()], start_new_session=True)
        atexit.register(self.close)
        try:
            self._answer(starting=True)
        except BaseException:
            self.process.kill()
            self.close()
            raise

    def start(self, command: Command) -> int:
        """Fork a child for a command; returns its process id.

        Raises:
            ServerRefuses, EOFError, OSError: nothing was started.
        """
        log = None if command.log is None else str(command.log.absolute())
        given = {"module": command.module, "words": command.words, "log": log, "folder": str(Path.cwd())}
        with self._one:
            tell(self.connection, {"start": {**given, "environment": environment(command)}})
            return self._answer()["pid"]

    def code(self, pid: int) -> int:
        """The exit code of a child that has ended.

        Raises:
            EOFError: the server is gone, and the exit code with it.
        """
        with self._one:
            tell(self.connection, {"wait": pid})
            return self._answer()["code"]

    def close(self) -> None:
        """End the server; its children go on."""
        atexit.unregister(self.close)
        self.connection.close()
        try:
            self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _answer(self, starting: bool = False) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE_S
        while not self.connection.closed and not self.connection.poll(LOOK_S):
            if time.monotonic() > end or (starting and signals.asked() is not None):
                raise EOFError
        if self.connection.closed:
            raise EOFError
        found = hear(self.connection)
        if "refused" in found:
            raise ServerRefuses(found["refused"])
        return found


class ForkedWorker:
    """A child of a fork server, seen through a descriptor of its process, which outlives the server."""

    def __init__(self, server: Server, pid: int) -> None:
        self.server, self.pid = server, pid
        self.descriptor = os.pidfd_open(pid)
        self._watch = select.poll()
        self._watch.register(self.descriptor, select.POLLIN)
        self.code: int | None = None
        self._known = False

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while it runs.

        Raises:
            WorkerLost: it ended after its server had.
        """
        if not self._known and self._has_ended():
            os.close(self.descriptor)
            self._known = True
            try:
                self.code = self.server.code(self.pid)
            except EOFError as error:
                raise WorkerLost from error
        return self.code

    def cancel(self) -> None:
        """Ask it to stop."""
        if not self._has_ended():
            signal.pidfd_send_signal(self.descriptor, signal.SIGTERM)

    def kill(self) -> None:
        """Kill the process and all its children."""
        if not self._has_ended():
            os.killpg(self.pid, signal.SIGKILL)

    def _has_ended(self) -> bool:
        return self._known or bool(self._watch.poll(0))


@cache
def _forks(pid: int) -> Forks:
    """The one of this process: after a fork, the parent's is not the child's."""
    return Forks()


@cache
def _has_pidfd() -> bool:
    """Return True if the system gives descriptors of processes: Linux since 5.3."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return True
