"""Distance of the constrained matrices from orthogonal: ||W^T W - I||_F, the largest over layers and gates."""

import torch
from lightning.pytorch import Trainer
from torch import Tensor

from orthobench.parametrizations.base import Parametrization, deviation
from orthobench.run.callbacks.log import LogAtSteps
from orthobench.run.learner import Learner


class Orthogonality(LogAtSteps):
    """Attributes: `max` the largest deviation seen and `last` the latest; None when nothing is constrained.

    `lost` is the first step at which a matrix was not of the kind that its parametrization constrains it to, as
    `contains` says of it with its `tolerance`; else None.
    """

    kept = ("max", "last", "lost")
    max: float | None = None
    last: float | None = None
    lost: int | None = None

    @torch.no_grad()
    def record(self, trainer: Trainer, module: Learner) -> None:
        matrices = module.model.recurrent_weights()
        found = [float(deviation(W)) for W in matrices]
        if found:
            self.last = max(found)
            if self.lost is None and not all(map(_kept, module.model.constrained(), matrices, found)):
                self.lost = trainer.global_step
            self.max = max(self.max or 0.0, self.last)
            self.write(trainer, {"orthogonality": self.last})


def _kept(parametrization: Parametrization, W: Tensor, far: float) -> bool:
    """Return True if W, which is `far` from orthogonal, is of the kind that it is constrained to."""
    if type(parametrization).contains is Parametrization.contains:
        return far <= parametrization.tolerance
    return bool(W.isfinite().all()) and parametrization.contains(W, parametrization.tolerance)
