"""Time of a step, an evaluation and the start of a run on this machine, measured for a second at most.

A step is what training does: its batch, forward, backward, clipping and the optimizer. One that would take longer than
a moment is measured with a shorter sequence, where its task has any, or else with fewer sequences at once, and scaled,
because time grows as either does.

On a CPU the clock is that of the processor's work, per thread, so that other programs beside it do not count; on a GPU,
whose work no such clock sees, it is the one on the wall. Work is never measured too short, so that of several
measurements the least is the nearest.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from itertools import count
from pathlib import Path

import torch

from orthobench.common import system
from orthobench.common.version import __version__
from orthobench.config.settings import Settings
from orthobench.errors import ConfigError
from orthobench.recording.record import hardware
from orthobench.run.bare_step import BareStep
from orthobench.run.memory import device_of, estimate
from orthobench.run.run import Run
from orthobench.run.trainer import quieten
from orthobench.study.costs.run_costs import START, KeptCost, curve_batches, digests
from orthobench.tasks.base import SPLITS, Batch, Split

ENOUGH_S, LONG_S = 0.025, 0.3  # a measurement, and a step that is shortened
SHORTEST = 25  # steps of a sequence that is measured in place of a longer one
FEWEST = 16  # sequences that are measured in place of more: fewer would use a processor worse
PACKAGE = Path(__file__).parents[2]
PARTS = ("cells", "ensemble", "layers", "models", "parametrizations", "run", "scan", "tasks")  # code of a step
SOURCES = (".py", ".c", ".h", ".cuh")
RATE = 1e10  # multiply-adds a second at least, by which it is told in advance which step would take long


def measure(settings: Settings) -> KeptCost:
    """Cost of a run of these settings by the step, measured here.

    Raises:
        OrthobenchError: it cannot be built, its data is missing, or its first step fails.
    """
    quieten()  # which decides how many threads there are
    clock = clock_of(device_of(settings.trainer.get("accelerator", "auto")))
    before = clock()
    exp = Run.fitted(settings)
    settings, task = exp.settings, exp.task
    task.check()
    batches: dict[Split, int] = {split: task.batches(split) for split in SPLITS}
    parameters = exp.parameters["total"]
    setup_s = clock() - before
    short = _shortened(exp)
    rows = task.batch_size if short is not None else _fewer(exp)
    step_s, batch_s = _timed(short or exp, clock, rows)
    part = rows / task.batch_size * ((short.task.T or 1) / (task.T or 1) if short is not None else 1.0)
    own, alike = digests(settings)
    name = f"{settings.model['name']} n={settings.model.get('hidden_size')} {settings.task['name']}"
    return KeptCost(
        shape=f"{name} T={task.T} B={task.batch_size}",
        T=task.T,
        digest=own,
        alike=alike,
        measured_T=None if part == 1.0 or task.T is None else max(round(part * task.T), 1),
        batches=batches,
        parameters=parameters,
        peak_bytes=estimate(exp.model, task),
        step_s=step_s / part,
        batch_s=batch_s / part,
        setup_s=setup_s,
        curve_batches=curve_batches(task),
        made=made_on(settings),
    )


def start_up(settings: Settings) -> KeptCost:
    """The work of a run of one step from its start to its end: what every run pays for the program itself."""
    words = ["model=rnn", "task=recall", "recipe=none", "T=5", "task.val_size=1", "task.test_size=1", "logger=none"]
    with tempfile.TemporaryDirectory() as root:
        command = [sys.executable, "-m", "orthobench", *words, "trainer.max_steps=1", f"runs_root={root}"]
        before = os.times()
        subprocess.run(command, check=True, capture_output=True)
        after = os.times()
    seconds = after.children_user - before.children_user + after.children_system - before.children_system
    nothing: dict[Split, int] = dict.fromkeys(SPLITS, 0)
    return KeptCost(START, None, START, START, None, nothing, 0, 0, seconds, 0.0, 0.0, 0.0, made_on(settings))


def made_on(settings: Settings) -> dict[str, str]:
    """Machine, versions and date of a measurement of these settings now."""
    quieten()
    device = device_of(settings.trainer.get("accelerator", "auto"))
    found, memory = hardware(device), system.memory()
    return {
        "device": device.type,
        "processor": str(found["gpu"] or found["cpu"]),
        "threads": str(torch.get_num_threads()),
        "cores": str(os.cpu_count() or ""),
        "memory": "" if memory == sys.maxsize else f"{memory / (1 << 30):.0f}",
        "torch": torch.__version__,
        "version": __version__,
        "date": datetime.now(UTC).date().isoformat(),
        "code": code(),
    }


@cache
def code() -> str:
    """A digest of the files that run a step, of which another version may take another time."""
    files = (path for part in PARTS for path in (PACKAGE / part).rglob("*") if path.suffix in SOURCES)
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(files))).hexdigest()[:16]


def busy() -> str | None:
    """A sentence that other programs keep this machine's cores, asked before work begins; None where one is free."""
    cores, load = system.cores(), system.load()
    if load <= cores - 1:
        return None
    meaning = "may be far too long" if torch.cuda.is_available() else "are those of a run that has a core for itself"
    return f"this machine is busy (load {load:.1f}, {cores} core{'s' * (cores > 1)}): the times below {meaning}."


def clock_of(device: torch.device) -> Callable[[], float]:
    """Seconds of this program's work on a device: the processor's per thread, or those on the wall for a GPU."""
    if device.type != "cpu":
        return _on_the_wall
    return lambda: time.process_time() / torch.get_num_threads()


def _on_the_wall() -> float:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


def _shortened(exp: Run) -> Run | None:
    """The same run with a shorter sequence, where a step of it would take long; None where it is measured as it is."""
    T, settings = exp.task.T, exp.settings
    if "T" not in settings.task or not T or T <= SHORTEST:
        return None
    seconds = _expected_s(exp)
    if seconds <= LONG_S:
        return None
    short = max(int(T * LONG_S / seconds), SHORTEST)
    try:
        found = Run(replace(settings, task=settings.task | {"T": short}, task_made=None))
        return found if short == found.task.T else None
    except ConfigError:  # its task has no such length
        return None


def _expected_s(exp: Run) -> float:
    """Seconds of a step at the most, by its multiply-adds."""
    return 3.0 * exp.budget["multiply_adds"] * (exp.task.T or 1) * exp.task.batch_size * exp.duration.accumulate / RATE


def _fewer(exp: Run) -> int:
    """Number of sequences to measure a step with: all of a batch, but where it would take long."""
    B = exp.task.batch_size
    if exp.task.T is None or exp.task.carries_state:
        return B
    return min(max(int(B * LONG_S / max(_expected_s(exp), LONG_S)), FEWEST), B)


def _timed(exp: Run, clock: Callable[[], float], rows: int) -> tuple[float, float]:
    """Seconds of a training step with `rows` sequences, and of so many in a batch of an evaluation, scaled to it."""
    device = device_of(exp.settings.trainer.get("accelerator", "auto"))
    model, task = exp.model.to(device), exp.task
    bare_step, indices = BareStep(exp), count()

    def batch() -> Batch:
        index = next(indices) % exp.duration.epoch_batches
        return tuple(part[:rows].to(device) for part in task.batch("train", 0, index))

    def step() -> None:
        bare_step(batch() for _ in range(exp.duration.accumulate))

    def evaluation() -> None:
        x, target, *mask = (part[:rows].to(device) for part in task.batch("train", 0, 0))
        for value in task.measure(model(x)[0], target, *mask).values():
            float(value)

    model.train()
    step_s = _least(step, clock)
    model.eval()
    with torch.inference_mode():
        sequences = task.eval_batch_size / task.batch_size
        batch_s = sequences * _least(evaluation, clock)
    return step_s, batch_s


def _least(work: Callable[[], None], clock: Callable[[], float]) -> float:
    """Seconds of a piece of work at its quickest, the first time left out, which compiles and fills caches."""
    work()
    found, spent = float("inf"), 0.0
    while spent < ENOUGH_S:
        start = clock()
        work()
        took = clock() - start
        found, spent = min(found, took), spent + took
    return found
