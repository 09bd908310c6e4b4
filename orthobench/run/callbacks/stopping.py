"""Early stopping: training ends when a validation metric comes to a threshold, or has not improved for some time."""

from typing import Any

from lightning.pytorch import Trainer

from orthobench.common.terminal import say
from orthobench.run.callbacks.log import Remembering
from orthobench.run.learner import Learner


class Stopping(Remembering):
    """Looks at each validation; Lightning's own callback forgets in a resumed run that it has stopped.

    Attributes:
        best: the best value so far of the metric that patience watches; None before the first that is a number.
        waited: validations since then; `patience` of them once training ends, and fewer before.
        held: validations in a row, up to now, at the threshold or better.
        solved: the step at which the threshold had been held long enough; None before. Training goes on for
            `extra_steps` from there, whatever comes.
        ended: whether a validation has ended training.

    Args:
        metric: the metric, without `val/`.
        patience: validations without improvement after which training ends; None for any number.
        threshold: the value at which training ends, or better; None for none.
        least: the first step at which training may end.
        hold: validations in a row that must be at the threshold; None for 1.
        extra_steps: steps that training goes on from there; None for none.
        flat_metric: the metric that patience watches, without `val/`; None for `metric`.
    """

    kept = ("best", "waited", "held", "solved", "ended")

    def __init__(
        self,
        metric: str,
        patience: int | None = None,
        threshold: float | None = None,
        least: int = 0,
        hold: int | None = None,
        extra_steps: int | None = None,
        flat_metric: str | None = None,
    ) -> None:
        self.metric, self.patience, self.threshold, self.least = metric, patience, threshold, least
        self.hold, self.extra_steps, self.flat_metric = hold, extra_steps or 0, flat_metric or metric
        self.best: float | None = None
        self.waited = self.held = 0
        self.solved: int | None = None
        self.ended = False

    @property
    def crossed(self) -> dict[str, int | None]:
        """The step of `solved`, for the record; nothing in runs that do not say how long it must be held."""
        return {} if self.hold is None else {"solved": self.solved}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.best, self.waited = state_dict["best"], state_dict["waited"]
        self.held, self.solved = state_dict.get("held", 0), state_dict.get("solved")
        self.ended = state_dict.get("ended", self.waited == self.patience)  # earlier versions had the patience alone

    def on_train_start(self, trainer: Trainer, module: Learner) -> None:  # type: ignore[override]
        if self.ended:  # resumed after the validation that ended it
            trainer.should_stop = True

    def on_validation_end(self, trainer: Trainer, module: Learner) -> None:  # type: ignore[override]
        step, early = trainer.global_step, trainer.global_step < self.least
        self._look_at_flat(module, early)
        value, sign = self._read(module, self.metric)
        reached = self.threshold is not None and sign * value >= sign * self.threshold
        self.held = self.held + 1 if reached else 0
        if self.solved is None and not early and self.held >= (self.hold or 1):
            self.solved = step
        if self.solved is not None:
            if step < self.solved + self.extra_steps:
                return
            reason = f"{self.metric} is {value:.4g} and has come to {self.threshold:g}"
        elif self.waited == self.patience:
            count = "1 validation" if self.patience == 1 else f"{self.patience} validations"
            reason = f"{self.flat_metric} has not improved for {count}"
        else:
            return
        self.ended = trainer.should_stop = True
        say(f"val/{reason}: training ends at step {step:,}")

    def _look_at_flat(self, module: Learner, early: bool) -> None:
        """Count the validations since the best value of the metric that patience watches."""
        value, sign = self._read(module, self.flat_metric)
        if value == value and (self.best is None or sign * value > sign * self.best):
            self.best, self.waited = value, 0
        elif self.patience is not None:
            self.waited = min(self.waited + 1, self.patience - early)

    @staticmethod
    def _read(module: Learner, metric: str) -> tuple[float, int]:
        """The latest validation's value of a metric, and 1 or -1 where more or less of it is better."""
        sign = 1 if module.task.metric_of(metric).direction == "higher" else -1
        return module.results[f"val/{metric}"], sign
