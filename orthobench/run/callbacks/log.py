"""Destinations of measurements: metrics.csv always, and the logger that the run chose."""

from typing import Any, ClassVar

from lightning.pytorch import Callback, Trainer

from orthobench.recording.curve import Curve
from orthobench.run.learner import Learner
from orthobench.tasks.duration import Duration


class Remembering(Callback):
    """Base of the callbacks of which a checkpoint holds attributes, those whose names are in `kept`."""

    kept: ClassVar[tuple[str, ...]] = ()

    def state_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.kept}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        for name in self.kept:
            setattr(self, name, state_dict[name])


class Log(Remembering):
    """Base of every callback that measures something.

    Args:
        curve: the run's metrics.csv.
        duration: turns steps into epochs.
        every: steps between measurements.
        subject: what is measured, or how much of it, as the subclass says.
    """

    def __init__(self, curve: Curve, duration: Duration, every: int, subject: Any = None) -> None:
        self.curve, self.duration, self.every, self.subject = curve, duration, every, subject

    def due(self, step: int) -> bool:
        """Return True if `step` is one of those to measure."""
        return step % self.every == 0

    def write(self, trainer: Trainer, values: dict[str, float]) -> None:
        """Record values at the current step."""
        step = trainer.global_step
        epoch = self.duration.epochs(step)
        self.curve.append(step, epoch, values)
        for logger in trainer.loggers:
            logger.log_metrics({**values, "epoch": epoch}, step=step)


class LogAtStart(Log):
    """Base of the callbacks that measure before training, and then when a subclass says."""

    def on_train_start(self, trainer: Trainer, module: Learner) -> None:  # type: ignore[override]
        if trainer.global_step == 0:
            self.record(trainer, module)

    def record(self, trainer: Trainer, module: Learner) -> None:
        """Measure, and write what was found at the current step."""
        self.write(trainer, self.measure())

    def measure(self) -> dict[str, float]:
        """The values of now, of a subclass that needs neither the trainer nor the module for them."""
        raise NotImplementedError


class LogAtSteps(LogAtStart):
    """Base of those that measure every so many steps."""

    def on_train_batch_end(self, trainer: Trainer, module: Learner, outputs: Any, batch: Any, index: int) -> None:  # type: ignore[override]
        if self.duration.ends_step(index):
            self.after_step(trainer, module)

    def after_step(self, trainer: Trainer, module: Learner) -> None:
        """Measure, if this step is one of those."""
        if self.due(trainer.global_step):
            self.record(trainer, module)


class LogAtValidations(LogAtStart):
    """Base of those that measure at every validation."""

    def on_validation_end(self, trainer: Trainer, module: Learner) -> None:  # type: ignore[override]
        self.record(trainer, module)
