"""How far the recurrent matrices are from isometries: max |sigma_i - 1| (Spectral-RNN, figure 4).

The largest over layers and gates. For a matrix in a band this is the margin in use, at most r.
"""

from typing import Any

import torch
from lightning.pytorch import Trainer

from orthobench.parametrizations.base import Parametrization
from orthobench.run.callbacks.log import Log
from orthobench.run.learner import Learner


class SingularValues(Log):
    """Args: `parametrizations`, those that are looked at; see `Log` for the others."""

    def __init__(self, parametrizations: list[Parametrization], *args: Any) -> None:
        super().__init__(*args)
        self.parametrizations = parametrizations

    def on_train_start(self, trainer: Trainer, module: Learner) -> None:  # type: ignore[override]
        if trainer.global_step == 0:
            self.write(trainer, self.measure())

    def on_train_batch_end(self, trainer: Trainer, module: Learner, *args: Any) -> None:  # type: ignore[override]
        if self.due(trainer.global_step):
            self.write(trainer, self.measure())

    @torch.no_grad()
    def measure(self) -> dict[str, float]:
        """The margin now."""
        return {"singular_value_margin": max(margin(p()) for p in self.parametrizations)}


def margin(W: torch.Tensor) -> float:
    """The largest |sigma_i - 1| of a matrix, in float64."""
    return float((torch.linalg.svdvals(W.detach().to(torch.promote_types(W.dtype, torch.float64))) - 1).abs().max())
