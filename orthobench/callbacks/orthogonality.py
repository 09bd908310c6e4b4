"""How far the constrained matrices are from orthogonal: ||W^T W - I||_F, the largest over layers and gates."""

from typing import Any

import torch
from lightning.pytorch import Trainer

from orthobench.callbacks.log import Log
from orthobench.learner import Learner
from orthobench.parametrizations.base import deviation


class Orthogonality(Log):
    """Attributes: `max` the largest deviation seen and `last` the latest; null when nothing is constrained."""

    max: float | None = None
    last: float | None = None

    def state_dict(self) -> dict[str, Any]:
        return {"max": self.max, "last": self.last}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.max, self.last = state_dict["max"], state_dict["last"]

    def on_train_start(self, trainer: Trainer, module: Learner) -> None:  # type: ignore[override]
        if trainer.global_step == 0:
            self.measure(trainer, module)

    def on_train_batch_end(self, trainer: Trainer, module: Learner, *args: Any) -> None:  # type: ignore[override]
        if self.due(trainer.global_step):
            self.measure(trainer, module)

    @torch.no_grad()
    def measure(self, trainer: Trainer, module: Learner) -> None:
        """Look at every constrained matrix now."""
        weights = module.model.recurrent_weights()
        if weights:
            self.last = max(float(deviation(W)) for W in weights)
            self.max = max(self.max or 0.0, self.last)
            self.write(trainer, {"orthogonality": self.last})
