"""Early stopping: training ends when a validation metric has not improved for a number of validations."""

from typing import Any

from lightning.pytorch import Callback, Trainer

from orthobench.run.learner import Learner
from orthobench.terminal import say


class Stopping(Callback):
    """Counts the validations since the best one; Lightning's own callback forgets in a resumed run that it has stopped.

    Attributes:
        best: the best value so far; null before the first that is a number.
        waited: validations since then; `patience` of them once training ends, and fewer before.

    Args:
        patience: validations without improvement after which training ends.
        metric: the metric, without `val/`.
        least: the first step at which training may end.
    """

    def __init__(self, patience: int, metric: str, least: int = 0) -> None:
        self.patience, self.metric, self.least = patience, metric, least
        self.best: float | None = None
        self.waited = 0

    def state_dict(self) -> dict[str, Any]:
        return {"best": self.best, "waited": self.waited}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.best, self.waited = state_dict["best"], state_dict["waited"]

    def on_train_start(self, trainer: Trainer, module: Learner) -> None:  # type: ignore[override]
        if self.waited >= self.patience:  # resumed after the validation that ended it
            trainer.should_stop = True

    def on_validation_end(self, trainer: Trainer, module: Learner) -> None:  # type: ignore[override]
        value = module.results[f"val/{self.metric}"]
        higher = module.task.metric_of(self.metric).direction == "higher"
        if value == value and (self.best is None or (value > self.best if higher else value < self.best)):
            self.best, self.waited = value, 0
            return
        self.waited = min(self.waited + 1, self.patience - (trainer.global_step < self.least))
        if self.waited == self.patience:
            trainer.should_stop = True
            count = "1 validation" if self.patience == 1 else f"{self.patience} validations"
            say(f"val/{self.metric} has not improved for {count}: training ends at step {trainer.global_step:,}")
