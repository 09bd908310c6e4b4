"""Commands carried out by the worker processes of joblib, on this machine."""

import shutil
import tempfile
import weakref
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from orthobench.errors import not_installed
from orthobench.launch.remote import Surroundings, carry_out
from orthobench.launch.workers import Command, WorkerLost


class Joblib:
    """Lets joblib's worker processes start commands.

    Args:
        n_jobs: how many of them; -1 is as many as there are cores.

    Raises:
        ConfigError: joblib is not installed.
    """

    remote = True

    def __init__(self, n_jobs: int = -1) -> None:
        try:
            from joblib import cpu_count
        except ImportError as error:
            raise not_installed("the joblib launcher", "joblib") from error
        self.at_once = n_jobs if n_jobs > 0 else max(cpu_count() + 1 + n_jobs, 1)
        self.stops = Path(tempfile.mkdtemp(prefix="orthobench-"))
        weakref.finalize(self, shutil.rmtree, self.stops, ignore_errors=True)
        self._executor: Any = None
        self._count = 0

    def submit(self, command: Command) -> "JoblibWorker":
        """Give a command to a worker process."""
        self._count += 1
        stop = self.stops / str(self._count)
        given = (command, str(stop), Surroundings.of_this_process())
        try:
            future = self._workers().submit(_work, *given)
        except BrokenProcessPool:  # a worker was killed, and the others with it
            self._executor = None
            future = self._workers().submit(_work, *given)
        return JoblibWorker(future, stop)

    def close(self) -> None:
        """End the worker processes."""
        if self._executor is not None:
            self._executor.shutdown(kill_workers=True)

    def _workers(self) -> Any:
        if self._executor is None:
            from joblib.externals.loky import ProcessPoolExecutor

            self._executor = ProcessPoolExecutor(max_workers=self.at_once)
        return self._executor


class JoblibWorker:
    """A command that was given to joblib's workers."""

    def __init__(self, future: "Future[int]", stop: Path) -> None:
        self.future, self.stop = future, stop

    def poll(self) -> int | None:
        """The exit code; null while it runs or waits.

        Raises:
            WorkerLost: its worker process was killed.
        """
        if not self.future.done():
            return None
        try:
            return self.future.result()
        except BrokenProcessPool as error:
            raise WorkerLost from error

    def cancel(self) -> None:
        """Ask it to stop."""
        self.stop.touch()

    def kill(self) -> None:
        """Nothing more: the worker process kills what does not stop."""
        self.cancel()


def _work(command: Command, stop: str, surroundings: Surroundings) -> int:
    surroundings.enter()
    return carry_out(command, Path(stop).exists, "joblib's worker")
