"""Stops a run whose loss or gradient is no longer a finite number, before the step that would spoil the weights.

What the last step spoils is seen by the scores of the final weights, and these are not saved where it is known that
they are the final ones.

On a GPU reading a number waits for it, so there the first bad step is noted on the device, and read every few steps and
before anything is saved.
"""

import math
from typing import Any

import torch
from lightning.pytorch import Trainer
from torch import Tensor

from orthobench.errors import DivergedError
from orthobench.models.optim import lists
from orthobench.run.callbacks.log import Remembering
from orthobench.run.learner import Learner


class Finite(Remembering):
    """Attributes: `step` of the first loss or gradient that is not finite, and `last_loss`, the last finite loss.

    Args:
        every: steps between two looks at what a GPU has noted.
    """

    kept = ("last_loss",)

    def __init__(self, every: int) -> None:
        self.every = every
        self.step: int | None = None
        self.last_loss: float | None = None
        self._noted: tuple[Tensor, Tensor] | None = None

    def on_before_optimizer_step(self, trainer: Trainer, module: Learner, optimizer: Any) -> None:  # type: ignore[override]
        loss = module.loss
        if loss is None:
            return
        scaled = str(trainer.precision).startswith("16")  # infinite gradients belong to the search for a scale
        parameters = [] if scaled else [p for group in optimizer.param_groups for p in group["params"]]
        gradients = [p.grad for p in parameters if p.grad is not None]
        norms = lists._foreach_norm(gradients) if gradients else []
        if loss.device.type == "cpu":
            self._look(trainer, float(loss), math.hypot(*map(float, norms)))
            return
        step = trainer.global_step + 1
        self._noted = first, last_loss = self.notes(loss)
        good = torch.isfinite(torch.stack([loss, *norms])).all()
        before = first < 0
        last_loss.copy_(torch.where(before & torch.isfinite(loss), loss, last_loss))
        first.copy_(torch.where(before & ~good, step, first))

    def on_train_batch_end(self, trainer: Trainer, module: Learner, *args: Any) -> None:  # type: ignore[override]
        if trainer.global_step % self.every == 0:
            self.check()

    def on_validation_start(self, trainer: Trainer, module: Learner) -> None:  # type: ignore[override]
        self.check()

    def on_validation_end(self, trainer: Trainer, module: Learner) -> None:  # type: ignore[override]
        if trainer.state.fn != "fit" or trainer.global_step == module.duration.steps:
            self.look_at(module.results, module.task.metric, trainer.global_step)

    def look_at(self, scores: dict[str, float], metric: str, step: int) -> None:
        """Look at the scores of the final weights.

        Raises:
            DivergedError: a loss or a value of the headline metric is not finite.
        """
        for name, value in scores.items():
            if name.partition("/")[2] in ("loss", metric) and not math.isfinite(value):
                self._stop(step, f"{name} of the final weights is {value}")

    def check(self) -> None:
        """Read what a GPU has noted.

        Raises:
            DivergedError: a loss or gradient was not finite.
        """
        if self._noted is None:
            return
        first, last = int(self._noted[0]), float(self._noted[1])
        self.last_loss = last if math.isfinite(last) else None
        if first >= 0:
            self._stop(first, "training loss or gradient is not finite")

    def notes(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """The first bad step, -1 for none, and the last finite loss before it, NaN for none, as far as is noted.

        Args:
            like: a tensor whose device and dtype these have.
        """
        if self._noted is not None:
            return self._noted
        last = math.nan if self.last_loss is None else self.last_loss
        return like.new_full((), -1, dtype=torch.long), like.new_full((), last)

    def hear(self, notes: tuple[Tensor, Tensor]) -> None:
        """Take over what was noted elsewhere, and read it where reading does not wait for a GPU.

        Raises:
            DivergedError: a loss or gradient was not finite.
        """
        self._noted = notes
        if notes[0].device.type == "cpu":
            self.check()
            self._noted = None

    def _look(self, trainer: Trainer, loss: float, norm: float) -> None:
        if not math.isfinite(loss):
            self._stop(trainer.global_step + 1, f"training loss is {loss}")
        self.last_loss = loss
        if not math.isfinite(norm):
            self._stop(trainer.global_step + 1, f"training gradient's norm is {norm}")

    def _stop(self, step: int, what: str) -> None:
        self.step = step
        last = "none" if self.last_loss is None else f"{self.last_loss:.6g}"
        raise DivergedError(
            f"the {what} at step {step}; the last finite loss was {last}"
            "; use a lower optimizer.lr, or trainer.gradient_clip_val=1."
        )
