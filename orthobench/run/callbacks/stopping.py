"""Early stopping: training ends when a validation metric comes to a threshold, or has not improved for some time."""

from typing import Any

from lightning.pytorch import Callback, Trainer

from orthobench.run.learner import Learner
from orthobench.terminal import say


class Stopping(Callback):
    """Looks at each validation; Lightning's own callback forgets in a resumed run that it has stopped.

    Attributes:
        best: the best value so far; null before the first that is a number.
        waited: validations since then; `patience` of them once training ends, and fewer before.
        ended: whether a validation has ended training.

    Args:
        metric: the metric, without `val/`.
        patience: validations without improvement after which training ends; null for any number.
        threshold: the value at which training ends, or better; null for none.
        least: the first step at which training may end.
    """

    def __init__(
        self, metric: str, patience: int | None = None, threshold: float | None = None, least: int = 0
    ) -> None:
        self.metric, self.patience, self.threshold, self.least = metric, patience, threshold, least
        self.best: float | None = None
        self.waited = 0
        self.ended = False

    def state_dict(self) -> dict[str, Any]:
        return {"best": self.best, "waited": self.waited, "ended": self.ended}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.best, self.waited = state_dict["best"], state_dict["waited"]
        self.ended = state_dict.get("ended", self.waited == self.patience)  # earlier versions had the patience alone

    def on_train_start(self, trainer: Trainer, module: Learner) -> None:  # type: ignore[override]
        if self.ended:  # resumed after the validation that ended it
            trainer.should_stop = True

    def on_validation_end(self, trainer: Trainer, module: Learner) -> None:  # type: ignore[override]
        value = module.results[f"val/{self.metric}"]
        sign = 1 if module.task.metric_of(self.metric).direction == "higher" else -1
        early = trainer.global_step < self.least
        if value == value and (self.best is None or sign * value > sign * self.best):
            self.best, self.waited = value, 0
        elif self.patience is not None:
            self.waited = min(self.waited + 1, self.patience - early)
        if self.threshold is not None and sign * value >= sign * self.threshold and not early:
            reason = f"is {value:.4g} and has come to {self.threshold:g}"
        elif self.waited == self.patience:
            count = "1 validation" if self.patience == 1 else f"{self.patience} validations"
            reason = f"has not improved for {count}"
        else:
            return
        self.ended = trainer.should_stop = True
        say(f"val/{self.metric} {reason}: training ends at step {trainer.global_step:,}")
