"""A training step of the whole program, with Lightning and all callbacks, against a bare loop over the same parts.

The steps of the two alternate: whenever the program asks for a batch, the bare loop does one step.
"""

import contextlib
import io
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

from orthobench.bench.timing import Bench, Row

GRAPH = "model=scornn task=copying T=100 model.hidden_size=128 task.batch_size=32 engine=graph"
CASES = ("model=scornn task=copying T=100 model.hidden_size=128 task.batch_size=32", "model=lstm task=adding T=100")
SKIPPED = 20


def measure(bench: Bench) -> Iterator[Row]:
    """All rows of this file."""
    graph = (GRAPH,) if bench.device.type == "cuda" else ()  # the program replays whole steps, the bare loop a cell
    for case in (*CASES[: 1 if bench.quick else None], *graph):
        pairs = _pairs(bench, case, 150 if bench.quick else 500)[SKIPPED:]
        ratio = statistics.median(bare / whole for bare, whole in pairs)
        for i, variant in enumerate(("bare loop", "orthobench run")):
            ms = 1000 * statistics.median(pair[i] for pair in pairs)
            share = ratio if i else 1.0
            yield Row("training", case, variant, "bare loop", share, cpu_ms=ms, rounds=len(pairs), unit="a step")


def _pairs(bench: Bench, case: str, steps: int) -> list[tuple[float, float]]:
    """Seconds of thread time (on a GPU of wall time) of every pair of steps."""
    from orthobench.run.attempt import Attempt
    from orthobench.run.run import Run
    from orthobench.study.catalogue import SHIPPED

    stamps: list[float] = []

    def stamp() -> None:
        bench.wait()
        stamps.append(time.perf_counter() if bench.device.type == "cuda" else time.thread_time())

    with tempfile.TemporaryDirectory() as root, contextlib.redirect_stdout(io.StringIO()):
        exp = Run.fitted(SHIPPED.settings(_words(case, steps, root)))
        bare_step, batch = _bare(Run.fitted(SHIPPED.settings(_words(case, steps, root))), bench), exp.task.batch

        def timed(split: Any, epoch: int, index: int) -> Any:
            if split == "train":
                stamp()
                bare_step(index)
                stamp()
            return batch(split, epoch, index)

        exp.task.batch = timed
        exp.run(Attempt)  # which takes the task as it is
    edges = zip(stamps[::2], stamps[1::2], stamps[2::2], strict=False)
    return [(middle - start, end - middle) for start, middle, end in edges]


def _words(case: str, steps: int, root: str) -> list[str]:
    limits = [f"trainer.max_steps={steps}", "trainer.limit_val_batches=1", "trainer.limit_test_batches=1"]
    return [*case.split(), *limits, f"runs_root={root}", "logger=none", "recipe=none", "trainer.accelerator=auto"]


def _bare(exp: Any, bench: Bench) -> Callable[[int], None]:
    from orthobench.models.build import build_optimizer

    model, maps = exp.model.to(bench.device), exp.model.parametrizations()
    optimizer = build_optimizer(exp.settings, model)

    def step(index: int) -> None:
        x, target, *mask = (part.to(bench.device) for part in exp.task.batch("train", 0, index))
        loss = exp.task.loss(model(x)[0], target, *mask)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for parametrization in maps:
            parametrization.after_step()

    return step
