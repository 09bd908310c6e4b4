"""Distance of the recurrent matrices from isometries: max |sigma_i - 1| (Spectral-RNN, figure 4).

The largest over layers and gates. For a matrix in a band this is the margin in use, at most r.
"""

from typing import Any

import torch
from lightning.pytorch import Trainer

from orthobench.parametrizations.base import Parametrization
from orthobench.run.callbacks.log import LogAtSteps
from orthobench.run.learner import Learner


class SingularValues(LogAtSteps):
    """Args: `parametrizations`, those that are looked at; see `Log` for the others."""

    def __init__(self, parametrizations: list[Parametrization], *args: Any) -> None:
        super().__init__(*args)
        self.parametrizations = parametrizations

    @torch.no_grad()
    def measure(self) -> dict[str, float]:
        """The margin in use."""
        return {"singular_value_margin": max(margin(p()) for p in self.parametrizations)}

    def record(self, trainer: Trainer, module: Learner) -> None:
        self.write(trainer, self.measure())


def margin(W: torch.Tensor) -> float:
    """The largest |sigma_i - 1| of a matrix, in float64."""
    return float((torch.linalg.svdvals(W.detach().to(torch.promote_types(W.dtype, torch.float64))) - 1).abs().max())
