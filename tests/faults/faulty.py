"""Faults that a run is put through: writes that fail, kills and signals at a given operation, phase or step.

`orthobench.recording.files` calls `os` for everything that it writes; here its `os` is exchanged for one that counts.
"""

import errno
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

WRITES = ("mkdir", "write", "fsync", "link", "replace")


class Faulty:
    """`os` for the writer, failing at operation `at` (from 1).

    Kinds: `before`, `after` and `torn` kill the process before, after or half-way through the operation; a name from
    `errno` makes it and all that follow fail with that error; `count` notes the operations in the file `log`.
    """

    def __init__(self, kind: str, at: int, log: Path | None) -> None:
        self.kind, self.at, self.log, self.number = kind, at, log, 0
        self.lines: list[str] = []

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        if name == "open":
            return self._open
        return (lambda *words, **named: self._do(name, real, *words, **named)) if name in WRITES else real

    def _open(self, path: Any, flags: int, *mode: int) -> int:
        if flags & os.O_CREAT:
            return self._do("create", os.open, path, flags, *mode)
        return os.open(path, flags, *mode)

    def _do(self, name: str, real: Any, *words: Any, **named: Any) -> Any:
        self.number += 1
        if self.kind == "count":
            assert self.log is not None
            with self.log.open("a") as file:
                file.write(f"{name}\n")
            return real(*words, **named)
        if self.number < self.at or (self.kind in ("before", "after", "torn") and self.number > self.at):
            return real(*words, **named)
        if self.kind == "before":
            die()
        if self.kind == "torn":
            if name == "write":
                real(words[0], bytes(words[1])[: len(words[1]) // 2])
            die()
        if self.kind == "after":
            real(*words, **named)
            die()
        if name == "write":  # a disk that fills up takes a part first
            real(words[0], bytes(words[1])[: len(words[1]) // 2])
        number = getattr(errno, self.kind)
        raise OSError(number, os.strerror(number), str(words[0]))


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)


def install(order: dict[str, Any]) -> None:
    """Arm what the order asks for."""
    if "fault" in order:
        from orthobench.recording import files

        log = order["fault"].get("log")
        files.os = Faulty(order["fault"]["kind"], order["fault"].get("at", 0), Path(log) if log else None)  # type: ignore[attr-defined]
    if "stop_at_step" in order:
        _stop_at_step(order["stop_at_step"])
    if "kill_at_step" in order:
        _stop_at_step(order["kill_at_step"], die)
    if "stop_in_validation" in order:
        _stop_in_validation(*order["stop_in_validation"])
    if "kill_after_validation" in order:
        _kill_after_validation(order["kill_after_validation"])
    if "signal_in" in order:
        _signal_in(order["signal_in"], order["signals"], order.get("apart", 0.01))
    if "commit" in order:
        from orthobench.recording import record

        record.code = lambda: {"git": order["commit"], "dirty": False}  # type: ignore[assignment]
    if "clock" in order:
        _move_clock(order["clock"])


def _stop_at_step(step: int, how: Callable[[], None] | None = None) -> None:
    """As if SIGTERM arrived during `step`, or something else that is called then."""
    from orthobench.run.callbacks.saver import Saver

    begin = Saver.on_train_batch_start

    def arrive(self: Saver, trainer: Any, module: Any, batch: Any, index: int) -> None:
        begin(self, trainer, module, batch, index)
        if trainer.global_step == step - 1:
            self.stop_requested = signal.SIGTERM
            if how is not None:
                how()

    Saver.on_train_batch_start = arrive  # type: ignore[method-assign]


def _stop_in_validation(number: int, batch: int) -> None:
    """As if SIGTERM arrived during a batch of a validation; validations are counted from 1, batches from 0."""
    from orthobench.run.callbacks.saver import Saver

    end, seen = Saver.on_validation_batch_end, [0]

    def arrive(self: Saver, trainer: Any, module: Any, outputs: Any, given: Any, index: int, *rest: Any) -> None:
        seen[0] += index == 0
        if seen[0] == number and index == batch:
            self.stop_requested = signal.SIGTERM
        end(self, trainer, module, outputs, given, index, *rest)

    Saver.on_validation_batch_end = arrive  # type: ignore[method-assign]


def _kill_after_validation(number: int) -> None:
    """Kill the run when a validation, counted from 1, has been saved."""
    from orthobench.run.callbacks.saver import Saver

    end, seen = Saver.on_validation_end, [0]

    def arrive(self: Saver, trainer: Any, module: Any) -> None:
        end(self, trainer, module)
        seen[0] += 1
        if seen[0] == number:
            die()

    Saver.on_validation_end = arrive  # type: ignore[method-assign]


def _move_clock(seconds: float) -> None:
    """Let the time of day jump at the third training step."""
    from orthobench.run.learner import Learner

    real_step, real_time, steps = Learner.training_step, time.time, [0]

    def step(self: Learner, *words: Any) -> Any:
        steps[0] += 1
        if steps[0] == 3:
            time.time = lambda: real_time() + seconds
        return real_step(self, *words)

    Learner.training_step = step  # type: ignore[method-assign]


PHASES = {
    "setup": ("orthobench.run.run", "refuse_if_too_large"),
    "build": ("orthobench.run.attempt", "build_optimizer"),
    "train": ("orthobench.run.learner", "Learner.training_step"),
    "validate": ("orthobench.run.learner", "Learner.validation_step"),
    "save": ("orthobench.recording.checkpoint", "write_bytes"),
    "test": ("orthobench.run.learner", "Learner.test_step"),
    "record": ("orthobench.run.attempt", "write_sealed"),
}


def _signal_in(phase: str, numbers: list[int], apart: float) -> None:
    """Let signals arrive in a phase, so many seconds apart, when it is reached a second time where it comes again."""
    import importlib

    module, _, name = PHASES[phase][0], None, PHASES[phase][1]
    place: Any = importlib.import_module(module)
    *path, last = name.split(".")
    for part in path:
        place = getattr(place, part)
    real, calls = getattr(place, last), [0]

    def arrive(*words: Any, **named: Any) -> Any:
        calls[0] += 1
        if calls[0] == (2 if phase in ("train", "validate", "save") else 1):
            for number in numbers:
                os.kill(os.getpid(), number)
                time.sleep(apart)
        return real(*words, **named)

    setattr(place, last, arrive)
