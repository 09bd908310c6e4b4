"""Loss, learning rates, gradient norm and speed, every few steps; validation metrics when there are any."""

import time
from collections.abc import Callable
from typing import Any

import torch
from lightning.pytorch import Trainer

from orthobench.run.callbacks.log import Log
from orthobench.run.learner import Learner


class TrainingLog(Log):
    """Attributes: `train_s` seconds of `clock` in training, over all attempts of the run, up to the latest look."""

    kept = ("train_s",)
    train_s: float = 0.0
    clock: Callable[[], float] = staticmethod(time.monotonic)
    _mark: tuple[float, int] | None = None  # of the clock and the step, while training goes on
    _gradient_norm: torch.Tensor | None = None
    _rates: dict[str, float] | None = None

    def state_dict(self) -> dict[str, float]:
        return {"train_s": self.spent_s}

    @property
    def spent_s(self) -> float:
        """Seconds in training up to now."""
        return self.train_s + (0.0 if self._mark is None else self.clock() - self._mark[0])

    def on_train_start(self, trainer: Trainer, module: Learner) -> None:  # type: ignore[override]
        self._mark = (self.clock(), trainer.global_step)

    def on_before_optimizer_step(self, trainer: Trainer, module: Learner, optimizer: Any) -> None:  # type: ignore[override]
        if self.due(trainer.global_step + 1):
            gradients = [p.grad for p in module.model.parameters() if p.grad is not None]
            self._gradient_norm = torch.nn.utils.get_total_norm(gradients)
            groups = module.optimizer.param_groups  # here, because after the step they are those of the next
            self._rates = {f"lr/{group['name']}": float(group["lr"]) for group in groups}

    def on_train_batch_end(self, trainer: Trainer, module: Learner, *args: Any) -> None:  # type: ignore[override]
        step = trainer.global_step
        if not self.due(step) or self._gradient_norm is None or module.loss is None:
            return
        values = {"train/loss": float(module.loss), "gradient_norm": float(self._gradient_norm), **(self._rates or {})}
        self._gradient_norm = self._rates = None
        values |= self.look(step)
        self.write(trainer, values)

    def look(self, step: int) -> dict[str, float]:
        """Add the time since the last look to `train_s`, and tell the speed since then."""
        if self._mark is None:
            return {}
        seconds, steps = self.clock() - self._mark[0], step - self._mark[1]
        self.train_s += seconds
        self._mark = (self.clock(), step)
        return {"steps_per_s": steps / seconds} if steps and seconds > 0 else {}

    def pause(self, step: int) -> None:
        """Stop the clock."""
        self.look(step)
        self._mark = None

    def on_validation_start(self, trainer: Trainer, module: Learner) -> None:  # type: ignore[override]
        self.pause(trainer.global_step)

    def on_validation_end(self, trainer: Trainer, module: Learner) -> None:  # type: ignore[override]
        self._mark = (self.clock(), trainer.global_step)
        self.write(trainer, module.results)
