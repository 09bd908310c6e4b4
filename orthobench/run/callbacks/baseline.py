"""When the trivial baseline is beaten: the first validated step below it, and below a tenth of it."""

from lightning.pytorch import Trainer

from orthobench.run.callbacks.log import Remembering
from orthobench.run.learner import Learner

LEVELS = {"baseline": 1.0, "tenth": 0.1}


class BaselineCrossing(Remembering):
    """Attributes: `steps`, the first step of each level in LEVELS, None while it has not been reached."""

    kept = ("steps",)

    def __init__(self) -> None:
        self.steps: dict[str, int | None] = dict.fromkeys(LEVELS)

    def on_validation_end(self, trainer: Trainer, module: Learner) -> None:  # type: ignore[override]
        loss, baseline = module.results.get("val/loss"), module.task.baseline.get("loss")
        if loss is None or baseline is None:
            return
        for name, share in LEVELS.items():
            if self.steps[name] is None and loss < share * baseline:
                self.steps[name] = trainer.global_step
