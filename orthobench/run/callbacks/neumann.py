"""Convergence of the Neumann series: ||(I + A)^{-1} delta||_2 of the latest step, below one (NC-GRU, figure 8)."""

from typing import Any

from lightning.pytorch import Trainer

from orthobench.run.callbacks.log import Log
from orthobench.run.learner import Learner


class NeumannNorm(Log):
    """Args: `subject`, parametrizations of which the largest norm is recorded; see `Log` for the others."""

    def on_train_batch_end(self, trainer: Trainer, module: Learner, *args: Any) -> None:  # type: ignore[override]
        if self.due(trainer.global_step):
            self.write(trainer, self.measure())

    def measure(self) -> dict[str, float]:
        """The norm after the latest step."""
        return {"neumann_norm": max(p.neumann_norm for p in self.subject)}
