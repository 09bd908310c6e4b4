"""Commands carried out by a Ray cluster: a remote task for each, with its request for processors, GPUs and memory.

Ray starts a task again whose worker or node has died, and the run goes on from its checkpoint. The only values that
tasks give back are exit codes.
"""

import logging
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

from orthobench.errors import ConfigError, Stopped, not_installed
from orthobench.launch.remote import LOOK_S, Surroundings, carry_out
from orthobench.launch.workers import Command, WorkerLost

POLL_S = 0.2
GB = 1 << 30


class Ray:
    """Gives commands to a Ray cluster.

    Args:
        address: that of the cluster; `auto` finds the one that this machine belongs to.
        cpus, gpus: what each command needs of its node; fractions are shares of one.
        memory_gb: memory that each command needs, by which Ray places it; null: not counted.
        retries: how often Ray starts a command again whose worker or node has died.
        queued: how many commands it is given at the same time.

    Raises:
        ConfigError: Ray is not installed, or there is no cluster at this address.
    """

    remote = True

    def __init__(
        self, address: str, cpus: float, gpus: float, memory_gb: float | None, retries: int, queued: int
    ) -> None:
        self.at_once, self.ray = queued, import_ray()
        handler = signal.getsignal(signal.SIGTERM)
        try:
            if not self.ray.is_initialized():
                self.ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
                if threading.current_thread() is threading.main_thread():
                    signal.signal(signal.SIGTERM, handler)  # Ray's would end this process at once
        except (ConnectionError, ValueError, RuntimeError) as error:
            reason = " ".join(str(error).split())[:200]
            raise ConfigError(
                f"hydra.launcher.address={address}: no Ray cluster answers there ({reason}); "
                "start one with `ray start --head`, or give its address."
            ) from error
        memory = {} if memory_gb is None else {"memory": int(memory_gb * GB)}
        self.task = self.ray.remote(num_cpus=cpus, num_gpus=gpus, max_retries=retries, **memory)(_work)
        self.open: dict[Any, RayWorker] = {}
        self._one, self._looked = threading.Lock(), 0.0

    def submit(self, command: Command) -> "RayWorker":
        """Give a command to the cluster."""
        reference = self.task.options(name=command.name or "orthobench").remote(command, Surroundings.of_this_process())
        with self._one:
            worker = self.open[reference] = RayWorker(self, reference)
        return worker

    def look(self) -> None:
        """Learn which commands have ended, all of them at once and not more often than every POLL_S seconds."""
        with self._one:
            if not self.open or time.monotonic() - self._looked < POLL_S:
                return
            ready, _ = self.ray.wait(list(self.open), num_returns=len(self.open), timeout=0)
            for reference in ready:
                self.open.pop(reference).end()
            self._looked = time.monotonic()


class RayWorker:
    """A task of the cluster."""

    def __init__(self, launcher: Ray, reference: Any) -> None:
        self.launcher, self.reference = launcher, reference
        self.code: int | None = None
        self.lost = False

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while it runs or waits.

        Raises:
            WorkerLost: Ray gave it up.
        """
        self.launcher.look()
        if self.lost:
            raise WorkerLost
        return self.code

    def cancel(self) -> None:
        """Ask it to stop; one that has not begun never does."""
        self.launcher.ray.cancel(self.reference)

    def kill(self) -> None:
        """Kill its worker process, with which its child stops."""
        self.launcher.ray.cancel(self.reference, force=True)

    def end(self) -> None:
        """Learn how it has ended."""
        errors = self.launcher.ray.exceptions
        try:
            self.code = self.launcher.ray.get(self.reference)
        except (errors.TaskCancelledError, KeyboardInterrupt):
            self.code = Stopped.exit_code
        except errors.RayTaskError as error:
            raise ConfigError(
                "the Ray workers cannot carry out a command; install orthobench there, too: "
                f"{str(error).splitlines()[-1]}"
            ) from error
        except errors.RayError:
            self.lost = True


def import_ray() -> Any:
    """Ray.

    Raises:
        ConfigError: it is not installed.
    """
    try:
        import ray
    except ImportError as error:
        raise not_installed("the Ray launcher", "ray") from error
    return ray


def _work(command: Command, surroundings: Surroundings) -> int:
    """On a node: Ray cancels a task by a KeyboardInterrupt."""
    surroundings.enter()
    asked = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(carry_out, command, asked.is_set, "Ray's worker")
        while not future.done():
            try:
                wait([future], LOOK_S)
            except KeyboardInterrupt:
                asked.set()
        return future.result()
