"""Hooks that do nothing are not called, and nothing is profiled where nobody asked for it.

At every step Lightning opens a profiler's context, notes the hook's name and writes a line for a debug log, for each of
these hooks of each callback and of the module, though most have nothing to do: together half of what a step costs
beyond its computation. A hook that is null is passed over.
"""

from contextlib import nullcontext
from typing import Any

from lightning.pytorch import Callback
from lightning.pytorch.profilers import PassThroughProfiler

from orthobench.run.learner import Learner

EVERY_STEP = (
    "on_train_batch_start",
    "on_before_zero_grad",
    "on_before_backward",
    "on_after_backward",
    "on_before_optimizer_step",
    "on_train_batch_end",
)
NOTHING = nullcontext()


class NoProfiler(PassThroughProfiler):
    """Lightning's own runs a generator forty times a step, to measure nothing."""

    def profile(self, action_name: str) -> Any:
        """A context that does nothing."""
        return NOTHING


def leave_out_idle(*owners: Callback | Learner) -> None:
    """Set every hook of a step to null that its owner's class leaves as Lightning defines it."""
    for owner in owners:
        for hook in EVERY_STEP:
            if getattr(type(owner), hook).__module__.startswith("lightning."):
                setattr(owner, hook, None)
