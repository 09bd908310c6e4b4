"""A step of training without Lightning and callbacks, of which the cost is measured."""

from collections.abc import Iterable

from torch.nn.utils import clip_grad_norm_, clip_grad_value_

from orthobench.models.build import build_optimizer, build_schedule
from orthobench.run.built import Built
from orthobench.run.learner import Learner
from orthobench.tasks.base import Batch


class BareStep:
    """The gradients of some batches, clipping, the optimizer and what the parametrizations do after it.

    Args:
        run: the run, whose model is on its final device.
    """

    def __init__(self, run: Built) -> None:
        model, settings = run.model, run.settings
        optimizer, schedule = build_optimizer(settings, model), build_schedule(settings)
        self.learner = Learner(model, run.task, optimizer, schedule, run.duration)
        self.learner.on_train_start()
        self._bound = settings.trainer.get("gradient_clip_val")
        by_value = settings.trainer.get("gradient_clip_algorithm") == "value"
        self._clip = clip_grad_value_ if by_value else clip_grad_norm_

    def __call__(self, batches: Iterable[Batch]) -> None:
        """Move the parameters once, by the sum of the gradients of all batches."""
        learner = self.learner
        learner.optimizer.zero_grad()
        for batch in batches:
            learner.step(batch, None)[0].backward()
        if self._bound:
            self._clip(learner.model.parameters(), self._bound)
        learner.optimizer.step()
        learner.after_step()
