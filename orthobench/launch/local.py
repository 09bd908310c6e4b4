"""Commands carried out on this machine: several side by side, or one for each GPU at a time."""

import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from orthobench.errors import ConfigError
from orthobench.launch.forked import launcher
from orthobench.launch.workers import Command, Worker, WorkerLost

VISIBLE = "CUDA_VISIBLE_DEVICES"


class Local:
    """The machine of this process: a fork server where a command may be forked, else new interpreters.

    Args:
        at_once: how many commands at the same time.
        gpus: the names of GPUs, as $CUDA_VISIBLE_DEVICES has them, each of which one command has for itself; none:
            every command sees what this process sees.
    """

    remote = False

    def __init__(self, at_once: int = 1, gpus: Sequence[str] = ()) -> None:
        self.at_once, self._one = at_once, threading.Lock()
        self._users: dict[str, Worker | None] = dict.fromkeys(gpus)

    def submit(self, command: Command) -> Worker:
        """Start a command."""
        if not self._users:
            return launcher(command.fork).submit(command)
        with self._one:  # tuning has several threads
            free = [name for name, worker in self._users.items() if worker is None or _has_ended(worker)]
            self.refuse(len(self._users) - len(free) + 1)
            worker = launcher(command.fork).submit(replace(command, variables={**command.variables, VISIBLE: free[0]}))
            self._users[free[0]] = worker
        return worker

    def refuse(self, at_once: int) -> None:
        """Refuse more commands at the same time than there are GPUs, each of which is for one.

        Raises:
            ConfigError: there are fewer.
        """
        if 0 < len(self._users) < at_once:
            raise ConfigError(f"{at_once} runs at a time are wanted, and {len(self._users)} GPUs are named for them.")


def local(n_jobs: Any, gpus: Any = None) -> Local:
    """The launcher of these settings.

    Args:
        n_jobs: how many commands at the same time; -1 is as many as there are cores, -2 one fewer, and so on.
        gpus: the GPUs that are shared out: `all`, how many, or a list of their numbers; null: no GPU is.

    Raises:
        ConfigError: a value is of a wrong type or out of range, or this machine has no such GPU.
    """
    if type(n_jobs) is not int or not n_jobs:
        raise ConfigError(f"hydra.launcher.n_jobs={n_jobs} is not a whole number >= 1; -1 is one for each core.")
    if gpus is None:
        return Local(n_jobs if n_jobs > 0 else max(len(os.sched_getaffinity(0)) + 1 + n_jobs, 1))
    names = _names(gpus, _known())
    if n_jobs not in (1, len(names)):
        raise ConfigError(
            f"hydra.launcher.n_jobs={n_jobs} does not apply beside hydra.launcher.gpus={gpus}, by which "
            f"{len(names)} runs at a time have a GPU each."
        )
    return Local(len(names), names)


def _names(gpus: Any, known: list[str]) -> list[str]:
    """The chosen ones among the names of the GPUs here."""
    chosen: Any = range(len(known)) if gpus == "all" else range(gpus) if type(gpus) is int else gpus
    right = isinstance(chosen, list | range) and all(type(one) is int for one in chosen)
    if not right or (gpus != "all" and (not chosen or len(set(chosen)) < len(chosen))):
        raise ConfigError(f"hydra.launcher.gpus={gpus} is neither all, nor a number >= 1, nor a list such as [0,2].")
    if not chosen or any(not 0 <= one < len(known) for one in chosen):
        raise ConfigError(f"hydra.launcher.gpus={gpus}: this machine shows {len(known)} GPUs, numbered from 0.")
    return [known[one] for one in chosen]


def _known() -> list[str]:
    """The names of the GPUs that this process sees; asking does not begin CUDA here."""
    import torch

    given, count = os.environ.get(VISIBLE), torch.cuda.device_count()
    names = [name.strip() for name in given.split(",")] if given is not None else [str(n) for n in range(count)]
    return names[:count]


def _has_ended(worker: Worker) -> bool:
    with suppress(WorkerLost):
        return worker.poll() is not None
    return True
