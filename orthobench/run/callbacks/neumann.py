"""Convergence of the Neumann series: ||(I + A)^{-1} delta||_2 of the latest step, below one (NC-GRU, figure 8)."""

from lightning.pytorch import Trainer

from orthobench.run.callbacks.log import LogAtSteps
from orthobench.run.learner import Learner


class NeumannNorm(LogAtSteps):
    """Args: `subject`, parametrizations of which the largest norm is recorded; see `Log` for the others."""

    def on_train_start(self, trainer: Trainer, module: Learner) -> None:  # type: ignore[override]
        """Measure nothing: no step has been made."""

    def measure(self) -> dict[str, float]:
        """The norm after the latest step."""
        return {"neumann_norm": max(p.neumann_norm for p in self.subject)}
