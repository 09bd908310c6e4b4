"""Length of a run in steps, and its validations: epochs and fractions turned into whole numbers."""

import math
from dataclasses import dataclass
from typing import Any

from orthobench.tasks.base import Task


@dataclass(frozen=True)
class Duration:
    """Lengths of a run.

    Attributes:
        epoch_batches: training batches of an epoch.
        accumulate: batches per optimizer step.
        steps: optimizer steps of the whole run; None when only time limits it.
        val_every: training batches between validations, a whole number of steps.
        least: optimizer steps before which neither `stopping` nor `trainer.max_time` ends the run.
    """

    epoch_batches: int
    accumulate: int
    steps: int | None
    val_every: int
    least: int = 0

    @property
    def epoch_steps(self) -> int:
        """Optimizer steps of an epoch."""
        return max(self.epoch_batches // self.accumulate, 1)

    def ends_step(self, index: int) -> bool:
        """Return True if the training batch `index` is the last of those whose gradients one step takes together."""
        return (index + 1) % self.accumulate == 0

    def epochs(self, steps: int) -> int:
        """Whole epochs in `steps`."""
        return steps * self.accumulate // self.epoch_batches


def limited(batches: int, limit: int | float | None) -> int:
    """`batches`, limited as Lightning's limit_*_batches does: a whole number, or a fraction up to 1.0."""
    if limit is None:
        return batches
    return min(batches, max(int(limit * batches), 1)) if isinstance(limit, float) else min(batches, limit)


def duration(trainer: dict[str, Any], batches: int) -> Duration:
    """The lengths that the trainer's settings mean for a task with so many training batches in an epoch."""
    epoch = limited(batches, trainer.get("limit_train_batches"))
    accumulate = trainer.get("accumulate_grad_batches") or 1
    limits = [trainer["max_steps"]] if trainer.get("max_steps", -1) != -1 else []
    if trainer.get("max_epochs"):
        limits.append(max(trainer["max_epochs"] * epoch // accumulate, 1))
    interval = trainer.get("val_check_interval", 1.0)
    if isinstance(interval, float):
        interval = max(int(interval * epoch * (trainer.get("check_val_every_n_epoch") or 1)) / accumulate, 1)
    interval = math.ceil(interval) * accumulate
    least = max(trainer.get("min_steps") or 0, -(-(trainer.get("min_epochs") or 0) * epoch // accumulate))
    return Duration(epoch, accumulate, min(limits) if limits else None, interval, least)


def evaluation_limits(trainer: dict[str, Any], task: Task) -> dict[str, int | float | None]:
    """Limits of a validation and a test, in Lightning's form: a share is at least one batch of every split."""
    batches = {"limit_val_batches": task.batches("val"), "limit_test_batches": task.batches("test")}
    if task.select_on_test:
        batches["limit_val_batches"] = min(batches.values())
    return {key: 1 if _none_left(trainer.get(key), fewest) else trainer.get(key) for key, fewest in batches.items()}


def _none_left(limit: int | float | None, batches: int) -> bool:
    return isinstance(limit, float) and int(limit * batches) < 1
