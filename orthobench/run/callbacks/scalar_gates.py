"""The scalar gates alpha and beta, and the share of steps since the last look after which the bound on beta was active.

One column per layer when there are several: `alpha/1`, `alpha/2`.
"""

from typing import Any

import torch
from lightning.pytorch import Trainer

from orthobench.run.callbacks.log import LogAtSteps
from orthobench.run.learner import Learner


class ScalarGates(LogAtSteps):
    """Args: `subject`, the layers; see `Log` for the others."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._clipped: list[Any] = [0.0] * len(self.subject)
        self._steps = 0

    def state_dict(self) -> dict[str, Any]:
        return {"clipped": [float(count) for count in self._clipped], "steps": self._steps}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._clipped, self._steps = list(state_dict["clipped"]), state_dict["steps"]

    def after_step(self, trainer: Trainer, module: Learner) -> None:
        self.count()
        super().after_step(trainer, module)

    def count(self) -> None:
        """Note whether the bounds are active; a GPU is not waited for."""
        self._steps += 1
        self._clipped = [count + cell.clipped() for count, cell in zip(self._clipped, self.subject, strict=True)]

    @torch.no_grad()
    def measure(self) -> dict[str, float]:
        """The gates, and the share of clipped steps since the last call."""
        values = {}
        for i, (cell, count) in enumerate(zip(self.subject, self._clipped, strict=True), start=1):
            layer = f"/{i}" if len(self.subject) > 1 else ""
            values |= {f"alpha{layer}": float(cell.alpha()), f"beta{layer}": float(cell.beta())}
            values[f"clipped{layer}"] = float(count) / self._steps if self._steps else float(cell.clipped())
        self._clipped, self._steps = [0.0] * len(self.subject), 0
        return values
