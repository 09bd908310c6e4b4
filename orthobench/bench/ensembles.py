"""Cost of a training loop by itself, of one member of an ensemble and of ten: all but data, loss and
gradients.

These stand still here, so that what is left is Python, clipping, optimizer, schedules, the look for numbers that are
not finite, and records. It is the processor's time, which on a GPU is spent while the GPU computes.
"""

import contextlib
import io
import statistics
import tempfile
import time
from collections.abc import Iterator
from typing import Any

from torch import Tensor

from orthobench.bench.timing import Bench, Row
from orthobench.ensemble.stacked import STACKED, Stacked

MEMBERS = (1, 10)
WORDS = "model=scornn task=copying T=3 model.hidden_size=8 task.batch_size=2 recipe=none trainer.gradient_clip_val=1"
ENDS = "task.val_size=2 task.test_size=2 trainer.val_check_interval=1000000 trainer.accelerator=cpu logger=none"
SKIPPED = 20


class Still(Stacked):
    """Gradients that never change, and the processor's time at every step."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.stamps: list[float] = []
        self._kept: list[Any] = []
        self._packed: tuple[Tensor, list[Tensor]] | None = None
        STILL.append(self)

    def train(self, requests: list[Any]) -> list[Any]:
        """See `Stacked.train`."""
        self.stamps.append(time.process_time())
        if len(self._kept) != len(requests):
            self._kept = super().train(requests)
        return self._kept

    def gradients(self, learners: list[Any], *rest: Any) -> tuple[Tensor, list[Tensor]]:
        """See `Stacked.gradients`."""
        if self._packed is None:
            self._packed = super().gradients(learners, *rest)
        self.stamps.append(time.process_time())
        losses, gradients = self._packed
        return losses, [g.clone() for g in gradients]


STILL: list[Still] = []


def measure(bench: Bench) -> Iterator[Row]:
    """All rows of this file."""
    yield from loops(3 if bench.quick else 9, 150 if bench.quick else 400)


def loops(rounds: int, steps: int) -> Iterator[Row]:
    """A step's milliseconds with one member and with ten, which take turns."""
    found = [[_step_ms(members, steps) for members in MEMBERS] for _ in range(rounds)]
    for i, members in enumerate(MEMBERS):
        ratio = statistics.median(round_[0] / round_[i] for round_ in found)
        ms = statistics.median(round_[i] for round_ in found)
        name = "one member" if members == 1 else f"{members} members"
        yield Row("ensemble", "the loop's own", name, "one member", ratio, cpu_ms=ms, rounds=rounds, unit="a step")


def _step_ms(members: int, steps: int) -> float:
    from orthobench.ensemble.running import run_members
    from orthobench.run.run import Run
    from orthobench.study.catalogue import SHIPPED

    STILL.clear()
    with tempfile.TemporaryDirectory() as root, contextlib.redirect_stdout(io.StringIO()):
        words = (*WORDS.split(), *ENDS.split(), f"trainer.max_steps={steps}", f"runs_root={root}")
        runs = [Run.fitted(SHIPPED.settings((*words, f"seed={seed}"))) for seed in range(1, members + 1)]
        for run in runs:
            batch = run.task.batch("train", 0, 0)
            run.task.batch = lambda split, epoch, index, batch=batch: batch
        run_members(runs, STACKED, Still)
    stamps = STILL[0].stamps[SKIPPED:]
    return 1000 * (stamps[-1] - stamps[0]) / (len(stamps) - 1)
