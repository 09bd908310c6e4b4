"""What a run would take on this machine: from the whole program at work for a few steps, and one batch of evaluation.

A short run validates half-way and logs four times, so that a step by itself, and what a validation costs besides its
batches (diagnostics, checkpoints), can be told apart.

On a CPU the clock is that of the processor's work, per thread, so that other programs beside it do not count; on a GPU,
whose work no such clock sees, it is the one on the wall. Work is never measured too short, so that of several
measurements, and of a longer sequence's, the least is the nearest.
"""

import contextlib
import ctypes
import gc
import io
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orthobench.terminal import duration_text

if TYPE_CHECKING:
    from orthobench.run.run import Run

FIRST, ENOUGH_S, MOST, ROUNDS = 2, 0.2, 200, 2
MIB = 1 << 20


@dataclass(frozen=True)
class Cost:
    """Seconds and bytes of a run.

    Attributes:
        parameters: trainable numbers.
        steps: optimizer steps.
        step_s: one of them.
        evaluation_s: every validation, and the tests at the end.
        start_s: the program's start, data and model.
        peak_bytes: most memory; null where it cannot be told.
    """

    parameters: int
    steps: int
    step_s: float
    evaluation_s: float
    start_s: float
    peak_bytes: int | None

    @property
    def total_s(self) -> float:
        """All of it."""
        return self.steps * self.step_s + self.evaluation_s + self.start_s

    def __str__(self) -> str:
        parts = [
            f"{self.parameters:,} parameters",
            f"{self.steps:,} steps x {1000 * self.step_s:.1f} ms",
            f"evaluation {duration_text(self.evaluation_s)}",
            f"start {duration_text(self.start_s)} = {duration_text(self.total_s)}",
        ]
        return ", ".join([*parts, *([] if self.peak_bytes is None else [f"{self.peak_bytes / MIB:,.0f} MiB"])])


def measure(words: list[str], folders: tuple[Path, ...] = ()) -> Cost:
    """What a run would take.

    Raises:
        OrthobenchError: the run is wrong, its data is missing, or its first steps fail.
    """
    from orthobench.run.run import Run

    exp = Run.of(words, folders)
    accumulate = exp.duration.accumulate
    found = _short_run(words, folders, FIRST, accumulate)
    if found["step_s"] * FIRST < ENOUGH_S:  # too short for a step; but a validation's own cost stands out best here
        again = _short_run(words, folders, FIRST, accumulate)  # the first one imported, compiled and loaded
        every = min(int(ENOUGH_S / again["step_s"]) + 1, MOST)
        rounds = [_short_run(words, folders, every, accumulate) for _ in range(ROUNDS)]
        least = {name: min(one[name] for one in rounds) for name in ("step_s", "batch_s", "setup_s")}
        found = rounds[0] | least | {"validation_s": again["validation_s"]}
    length, task = exp.duration, exp.task
    within = _steps_within(exp.settings.trainer.get("max_time"), found["step_s"])
    steps = int(min(length.steps or inf, max(within, length.least)))
    validations = -(-steps * length.accumulate // length.val_every)
    limits = exp.settings.trainer.get("limit_val_batches"), exp.settings.trainer.get("limit_test_batches")
    batches = _batches(task, "val", limits[0]) + (_batches(task, "test", limits[0]) if task.select_on_test else 0)
    tests = (1 if validations < 2 else 2) * _batches(task, "test", limits[1])
    evaluation = validations * (found["validation_s"] + batches * found["batch_s"]) + tests * found["batch_s"]
    return Cost(
        exp.parameters["total"], steps, found["step_s"], evaluation, start_up() + found["setup_s"], found["peak_bytes"]
    )


def same_cost(identity: dict[str, Any]) -> str:
    """A key that runs share which differ in what costs nothing: the seed and learning rates."""
    free = ("lr", "lr_recurrent")
    optimizer = {key: value for key, value in identity["optimizer"].items() if key not in free}
    return repr({**identity, "seed": 0, "optimizer": optimizer})


def no_shorter_is_dearer(costs: Iterable[tuple[dict[str, Any], Cost]]) -> list[Cost]:
    """The costs, each at most that of every longer sequence that is otherwise the same run.

    A shorter sequence is part of the work of a longer one, so what the longer one took is a bound for it as well.

    Args:
        costs: settings of runs, as their ids are made of, and what was measured.
    """
    measured = [(same_cost(_without_length(identity)), identity["task"].get("T"), cost) for identity, cost in costs]
    found = []
    for alike, T, cost in measured:
        bounds = [
            other
            for same, length, other in measured
            if T is not None and length is not None and (same, other.steps) == (alike, cost.steps) and length >= T
        ]
        parts = ("step_s", "evaluation_s", "start_s")
        found.append(replace(cost, **{part: min(getattr(one, part) for one in (cost, *bounds)) for part in parts}))
    return found


def _without_length(identity: dict[str, Any]) -> dict[str, Any]:
    return identity | {"task": {key: value for key, value in identity["task"].items() if key != "T"}}


def busy() -> str | None:
    """A sentence that other programs keep this machine's cores, asked before work begins; null where one is free."""
    import torch

    own = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()  # macOS has no former
    cores, load = own or 1, os.getloadavg()[0]
    if load <= cores - 1:
        return None
    meaning = "may be far too long" if torch.cuda.is_available() else "are those of a run that has a core for itself"
    return f"this machine is busy (load {load:.1f}, {cores} core{'s' * (cores > 1)}): the times below {meaning}."


def clock_of(device: str) -> Callable[[], float]:
    """Seconds of this program's work on a device: the processor's per thread, or those on the wall for a GPU."""
    import torch

    if device != "cpu":
        return time.perf_counter
    return lambda: time.process_time() / torch.get_num_threads()


@cache
def start_up() -> float:
    """Seconds of work of a run of one step from its start to its end: what every run pays for the program itself."""
    words = ["model=rnn", "task=recall", "recipe=none", "T=5", "task.val_size=1", "task.test_size=1", "logger=none"]
    with tempfile.TemporaryDirectory() as root:
        command = [sys.executable, "-m", "orthobench", *words, "trainer.max_steps=1", f"runs_root={root}"]
        before = os.times()
        subprocess.run(command, check=True, capture_output=True)
        after = os.times()
    return after.children_user - before.children_user + after.children_system - before.children_system


def _short_run(words: list[str], folders: tuple[Path, ...], every: int, accumulate: int) -> dict[str, Any]:
    """Four times `every` steps with a validation in the middle, in a folder of its own; seconds and bytes by name."""
    from orthobench.recording.curve import Curve
    from orthobench.run.attempt import Attempt
    from orthobench.run.built import Built
    from orthobench.run.run import Run

    def timed(run: Built, folder: Path) -> Attempt:
        attempt = Attempt(run, folder)
        attempt.training.clock = clock
        return attempt

    unseen = io.StringIO()
    with tempfile.TemporaryDirectory() as root, contextlib.redirect_stdout(unseen), contextlib.redirect_stderr(unseen):
        short = [
            *("trainer.max_epochs=null", "trainer.limit_val_batches=1", "trainer.limit_test_batches=1", "logger=none"),
            f"trainer.max_steps={4 * every}",
            f"trainer.val_check_interval={2 * every * accumulate}",
            f"trainer.log_every_n_steps={every}",
            f"runs_root={root}",
        ]
        exp = Run.of([*words, *short], folders)
        clock = _clock(exp)
        _forget_peak()
        start = clock()
        record = exp.run(timed)
        elapsed = clock() - start
        rows = Curve(exp.settings.folder / "metrics.csv").rows()
    rate = {row["step"] // every: row["value"] for row in rows if row["name"] == "steps_per_s"}
    step_s = 0.5 / rate[2] + 0.5 / rate[4]
    batch_s = _evaluation_batch(exp)
    return {
        "step_s": step_s,
        "validation_s": max(every * (1 / rate[3] - step_s), 0.0),
        "batch_s": batch_s,
        "setup_s": max(elapsed - record["time"]["train_s"] - 4 * batch_s, 0.0),
        "peak_bytes": record["hardware"]["peak_bytes"],
    }


def _evaluation_batch(exp: "Run") -> float:
    """Seconds of one batch of an evaluation, where the run would be."""
    import torch

    from orthobench.run.memory import device_of

    device = device_of(exp.settings.trainer.get("accelerator", "auto"))
    exp.model.to(device).eval()
    seconds, clock = [], _clock(exp)
    with torch.inference_mode():
        for _ in range(1 + ROUNDS):
            start = clock()
            x, target, *mask = (part.to(device) for part in exp.task.batch("val", 0, 0))
            for value in exp.task.measure(exp.model(x)[0], target, *mask).values():
                float(value)
            seconds.append(clock() - start)
    return min(seconds)


def _clock(exp: "Run") -> Callable[[], float]:
    from orthobench.run.memory import device_of
    from orthobench.run.trainer import quieten

    quieten()  # which decides how many threads there are
    return clock_of(device_of(exp.settings.trainer.get("accelerator", "auto")).type)


def _batches(task: Any, split: str, limit: Any) -> int:
    from orthobench.run.duration import limited

    return limited(task.batches(split), limit)


def _steps_within(max_time: str | None, step_s: float) -> float:
    """Steps until a time limit, days:hours:minutes:seconds."""
    if max_time is None:
        return inf
    days, hours, minutes, seconds = map(int, max_time.split(":"))
    return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) / step_s


def _forget_peak() -> None:
    """Let the peak of memory be that of what follows; where the system refuses, it is that of all so far."""
    import torch

    gc.collect()
    with contextlib.suppress(OSError, AttributeError):  # only the GNU library gives back what was freed
        ctypes.CDLL(None).malloc_trim(0)
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
