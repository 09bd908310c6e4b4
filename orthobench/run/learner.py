"""The one LightningModule: loss, metrics, optimizer and the hooks of the parametrizations."""

from typing import Any

import torch
from torch import Tensor
from torch.optim.lr_scheduler import LambdaLR

from orthobench.cells.base import State
from orthobench.errors import ConfigError
from orthobench.models.base import Network
from orthobench.models.optim import Optimizer
from orthobench.models.schedules import Constant, Schedule
from orthobench.parametrizations.accumulated import accumulated
from orthobench.parametrizations.moving_base import Settling
from orthobench.run.memory import rows_at_once
from orthobench.run.trainer import LeanModule
from orthobench.run.training_step import TrainingStep, answered, counted
from orthobench.tasks.base import Batch, Task
from orthobench.tasks.duration import Duration


class Learner(LeanModule):
    """Trains a model on a task.

    Attributes:
        loss: the training loss of the latest step, detached: the mean over the batches of it so far; read it rarely,
            reading waits for a GPU.
        results: the latest metrics of each evaluated split, such as `val/loss`.
    """

    def __init__(
        self, model: Network, task: Task, optimizer: Optimizer, schedule: Schedule, duration: Duration
    ) -> None:
        super().__init__()
        self.model, self.task, self.optimizer = model, task, optimizer
        self.schedule, self.duration = schedule, duration
        self.step = TrainingStep(model, task)
        self.loss: Tensor | None = None
        self.results: dict[str, float] = {}
        self._sums: dict[str, tuple[dict[str, Tensor], float]] = {}
        self._waiting: dict[str, list[Batch]] = {}
        self._rows = 1
        self._carried: dict[str, list[State]] = {}
        group_of = {id(p): i for i, group in enumerate(optimizer.param_groups) for p in group["params"]}
        self._accumulated = accumulated(model)
        self._maps = [(p, {group_of[id(q)] for q in p.parameters()}) for p in model.parametrizations()]

    def on_train_start(self) -> None:
        for gradient in self._accumulated:
            gradient.several = self.duration.accumulate > 1
        for parametrization in self.model.parametrizations():
            if isinstance(parametrization, Settling):
                parametrization.after_step()  # nothing is due, and it is known from here on without a look

    def training_step(self, batch: Batch, index: int) -> Tensor:
        loss, state = self.step(batch, self._before("train", index % self.duration.epoch_batches == 0))
        self._keep("train", state)
        self.note(loss.detach(), index)
        return loss

    def note(self, loss: Tensor, index: int) -> None:
        """Keep the loss of a training batch, as a part of the mean over those of its step."""
        before = index % self.duration.accumulate
        self.loss = loss if self.loss is None or not before else self.loss + (loss - self.loss) / (before + 1)

    def validation_step(self, batch: Batch, index: int, dataloader_idx: int = 0) -> None:
        self._measure("test" if dataloader_idx else "val", batch, index)

    def test_step(self, batch: Batch, index: int) -> None:
        self._measure("test", batch, index)

    def _before(self, split: str, first: bool) -> list[State] | None:
        """The state that the last batch left, on this device, where the task carries it from one to the next."""
        if first or not self.task.carries_state or split not in self._carried:
            return None
        return [tuple(s.to(self.device) for s in layer) for layer in self._carried[split]]

    def _keep(self, split: str, state: list[State]) -> None:
        if self.task.carries_state:
            self._carried[split] = [tuple(s.detach() for s in layer) for layer in state]

    def measured(self, split: str, batch: Batch, index: int) -> dict[str, Tensor]:
        """Every metric of one batch of an evaluation."""
        batch = counted(self.model, self.task, batch)
        y, state = answered(self.model, batch[0], self._before(split, index == 0), *batch[3:])
        self._keep(split, state)
        return self.task.measure(y, *batch[1:3])

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint["carried"] = self._carried.get("train")

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        if checkpoint["carried"] is not None:
            self._carried["train"] = checkpoint["carried"]

    def _measure(self, split: str, batch: Batch, index: int) -> None:
        if self.task.carries_state:
            self._add(split, batch, self.measured(split, batch, index))
            return
        waiting = self._waiting.setdefault(split, [])
        rows = sum(len(one[0]) for one in waiting) + len(batch[0])
        if waiting and (waiting[0][0].shape[1:] != batch[0].shape[1:] or rows > self._rows):
            self._measure_waiting(split)
        if not waiting:
            self._rows = rows_at_once(self.model, self.task, batch[0])
        waiting.append(counted(self.model, self.task, batch))

    def _measure_waiting(self, split: str) -> None:
        """Compute the batches that wait at once, and measure each by itself, so that no mean is another."""
        waiting = self._waiting[split]
        x, *steps = (
            parts[0] if len(parts) == 1 else torch.cat(parts)
            for parts in zip(*((batch[0], *batch[3:]) for batch in waiting), strict=True)
        )
        y, _ = answered(self.model, x, None, *steps)
        for own, batch in zip(y.split([len(x) for x, *_ in waiting]), waiting, strict=True):
            self._add(split, batch, self.task.measure(own, *batch[1:3]))
        waiting.clear()

    def _add(self, split: str, batch: Batch, means: dict[str, Tensor]) -> None:
        size = self.task.weight(*batch[1:3])
        sums, count = self._sums.get(split, ({}, 0.0))
        if sums and sums.keys() != means.keys():
            raise ConfigError(
                f"{type(self.task).__name__}: `measure` has {', '.join(sorted(sums.keys() ^ means.keys()))} in some "
                "batches alone, so that a mean would be of other sequences: return the same metrics for every batch."
            )
        for name, mean in means.items():
            sums[name] = sums.get(name, torch.zeros((), dtype=torch.float64, device=mean.device)) + mean.double() * size
        self._sums[split] = sums, count + size

    def _finish(self) -> None:
        for split, waiting in self._waiting.items():
            if waiting:
                self._measure_waiting(split)
        for split, (sums, count) in self._sums.items():
            means = {name: float(total) / count for name, total in sums.items()}
            values = self.task.summarise(means)
            for name, value in values.items():
                self.task.metric_of(name).check(value, type(self.task).__name__)
            self.results |= {f"{split}/{name}": value for name, value in values.items()}

    def on_validation_epoch_start(self) -> None:
        self._sums, self._waiting = {}, {}

    def on_test_epoch_start(self) -> None:
        self._sums, self._waiting = {}, {}

    def on_validation_epoch_end(self) -> None:
        self._finish()

    def on_test_epoch_end(self) -> None:
        self._finish()

    def configure_optimizers(self) -> Any:
        if isinstance(self.schedule, Constant):
            return self.optimizer
        scheduler = LambdaLR(self.optimizer, lambda step: self.factor(step))  # a method's state would be saved
        return {"optimizer": self.optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}

    def factor(self, step: int) -> float:
        """Factor of the schedule on the rates of a step."""
        length = self.duration
        return self.schedule.factor(step, length.steps or step + 1, length.epochs(step))

    def optimizer_step(self, *args: Any, **kwargs: Any) -> None:
        super().optimizer_step(*args, **kwargs)
        self.after_step()

    def after_step(self) -> None:
        """Do what the parametrizations do after an optimizer step."""
        groups = self.optimizer.param_groups
        for parametrization, own in self._maps:
            if own:
                parametrization.learning_rate = max(float(groups[i]["lr"]) for i in own)
            parametrization.after_step()
        for gradient in self._accumulated:
            gradient.clear()
