"""A training step of the whole program, Lightning and our callbacks included, against a bare loop over the same parts.

The cost of a step is the difference of a long and a short run, so that start, validation and test cancel out.
"""

import contextlib
import io
import tempfile
import time
from collections.abc import Iterator

from orthobench.bench.timing import Bench, Row

CASES = ("model=scornn task=copying T=100", "model=lstm task=adding T=100")
SHORT, LONG = 20, 120


def measure(bench: Bench) -> Iterator[Row]:
    """All rows of this file."""
    for case in CASES[: 1 if bench.quick else None]:
        ratios, costs = [], []
        for _ in range(3 if bench.quick else 7):
            bare = _bare(case, LONG) - _bare(case, SHORT)
            whole = _run(case, LONG) - _run(case, SHORT)
            ratios.append(bare / whole)
            costs.append((bare, whole))
        ratio = sorted(ratios)[len(ratios) // 2]
        for i, variant in enumerate(("bare loop", "orthobench run")):
            ms = 1000 * sorted(cost[i] for cost in costs)[len(costs) // 2] / (LONG - SHORT)
            yield Row(
                "training",
                case,
                variant,
                "bare loop",
                ratio if i else 1.0,
                cpu_ms=ms,
                rounds=len(ratios),
                unit="a step",
            )


def _words(case: str, steps: int, root: str) -> list[str]:
    limits = [f"trainer.max_steps={steps}", "trainer.limit_val_batches=1", "trainer.limit_test_batches=1"]
    return [*case.split(), *limits, f"runs_root={root}", "logger=none", "recipe=none", "trainer.accelerator=auto"]


def _run(case: str, steps: int) -> float:
    """Seconds of this thread in a run of `steps` steps."""
    from orthobench import build

    with tempfile.TemporaryDirectory() as root, contextlib.redirect_stdout(io.StringIO()):
        start = time.thread_time()
        build(*_words(case, steps, root)).run()
        return time.thread_time() - start


def _bare(case: str, steps: int) -> float:
    from orthobench import build, builder

    with tempfile.TemporaryDirectory() as root:
        exp = build(*_words(case, steps, root))
        optimizer = builder.build_optimizer(exp.settings, exp.model)
        start = time.thread_time()
        for index in range(steps):
            x, target, *mask = exp.task.batch("train", 0, index)
            loss = exp.task.loss(exp.model(x)[0], target, *mask)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            for parametrization in exp.model.constrained():
                parametrization.after_step()
        return time.thread_time() - start
