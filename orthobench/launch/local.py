"""Commands carried out on this machine: several side by side, or one or more for each GPU at a time."""

import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from orthobench.common import system
from orthobench.errors import ConfigError
from orthobench.launch.forked import launcher
from orthobench.launch.workers import Command, Worker, WorkerLost

VISIBLE = "CUDA_VISIBLE_DEVICES"


class Local:
    """The machine of this process: a fork server where a command may be forked, else new interpreters.

    Args:
        at_once: how many commands at the same time.
        gpus: the names of GPUs, as $CUDA_VISIBLE_DEVICES has them, of which each command sees one; none: every command
            sees what this process sees.
        per_gpu: how many commands share a GPU.
    """

    remote = False

    def __init__(self, at_once: int = 1, gpus: Sequence[str] = (), per_gpu: int = 1) -> None:
        self.at_once, self._per_gpu, self._one = at_once, per_gpu, threading.Lock()
        self._users: dict[str, list[Worker]] = {name: [] for name in gpus}

    def submit(self, command: Command) -> Worker:
        """Start a command, on the GPU that fewest commands use now."""
        if not self._users:
            return launcher(command.fork).submit(command)
        with self._one:  # tuning has several threads
            for name, users in self._users.items():
                self._users[name] = [worker for worker in users if not _has_ended(worker)]
            self.refuse(sum(map(len, self._users.values())) + 1)
            free = min(self._users, key=lambda name: len(self._users[name]))
            worker = launcher(command.fork).submit(replace(command, variables={**command.variables, VISIBLE: free}))
            self._users[free].append(worker)
        return worker

    def refuse(self, at_once: int) -> None:
        """Refuse more commands at the same time than the GPUs are for.

        Raises:
            ConfigError: they are for fewer.
        """
        if 0 < len(self._users) * self._per_gpu < at_once:
            each = f", {self._per_gpu} for each" if self._per_gpu > 1 else ""
            raise ConfigError(
                f"{at_once} runs at a time are wanted, and {len(self._users)} GPUs are named for them{each}"
                "; name more, or run fewer at a time."
            )


def local(n_jobs: Any, gpus: Any = None, per_gpu: Any = 1) -> Local:
    """The launcher of these settings.

    Args:
        n_jobs: how many commands at the same time; -1 is as many as there are cores, -2 one fewer, and so on.
        gpus: the GPUs that are shared out: `all`, how many, or a list of their numbers; null: no GPU is.
        per_gpu: how many commands share a GPU.

    Raises:
        ConfigError: a value is of a wrong type or out of range, or this machine has no such GPU.
    """
    if type(n_jobs) is not int or not n_jobs:
        raise ConfigError(f"hydra.launcher.n_jobs={n_jobs} is not a whole number >= 1; use -1 for one on each core.")
    if type(per_gpu) is not int or per_gpu < 1:
        raise ConfigError(
            f"hydra.launcher.per_gpu={per_gpu} is not a whole number >= 1: give the runs that share a GPU."
        )
    if gpus is None and per_gpu > 1:
        raise ConfigError(f"hydra.launcher.per_gpu={per_gpu} needs hydra.launcher.gpus=, such as gpus=all.")
    if gpus is None:
        return Local(n_jobs if n_jobs > 0 else max(system.cores() + 1 + n_jobs, 1))
    names = _names(gpus, _known())
    at_once = len(names) * per_gpu
    if n_jobs not in (1, at_once):
        shared = "have a GPU each" if per_gpu == 1 else f"have a GPU, {per_gpu} on each"
        raise ConfigError(
            f"hydra.launcher.n_jobs={n_jobs} does not apply beside hydra.launcher.gpus={gpus}, by which "
            f"{at_once} runs at a time {shared}"
            ": leave n_jobs out."
        )
    return Local(at_once, names, per_gpu)


def _names(gpus: Any, known: list[str]) -> list[str]:
    """The chosen ones among the names of the GPUs here."""
    chosen: Any = range(len(known)) if gpus == "all" else range(gpus) if type(gpus) is int else gpus
    right = isinstance(chosen, list | range) and all(type(one) is int for one in chosen)
    if not right or (gpus != "all" and (not chosen or len(set(chosen)) < len(chosen))):
        raise ConfigError(f"hydra.launcher.gpus={gpus} is neither all, nor a number >= 1, nor a list such as [0,2].")
    if not chosen or any(not 0 <= one < len(known) for one in chosen):
        some = "name some of them by their numbers from 0, or leave gpus out" if known else "leave gpus out"
        raise ConfigError(f"hydra.launcher.gpus={gpus}: this machine shows {len(known) or 'no'} GPUs; {some}.")
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
