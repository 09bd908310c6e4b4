"""A member of an ensemble: an ordinary run whose arithmetic is done for all members together."""

import orthobench.common.lean_lightning  # noqa: F401 - first: it imports Lightning without what no run uses

# isort: split

from collections.abc import Hashable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import torch
from lightning.pytorch import Callback, Trainer
from torch import Tensor

from orthobench.ensemble.joint_steps import Follower, run_jointly
from orthobench.ensemble.stacked import Stacked
from orthobench.ensemble.threads_in_turn import Turns
from orthobench.models.optim import update
from orthobench.run.attempt import Attempt
from orthobench.run.built import Built
from orthobench.run.callbacks.progress import Progress
from orthobench.run.learner import Learner
from orthobench.run.trainer import before_every_batch
from orthobench.tasks.base import Batch


class MemberLearner(Learner):
    """A learner whose losses and gradients are computed for all members together.

    Attributes:
        meeting: the `Turns` of all members.
        together: the `Stacked` computation of all members.
    """

    meeting: Turns
    together: Stacked
    _gradients: list[Tensor | None]

    def training_step(self, batch: Batch, index: int) -> Tensor:
        loss, self._gradients = self.meeting.meet(_key("train", batch), (self, batch), self.together.train)
        self.note(loss, index)
        return loss

    def backward(self, loss: Tensor, *args: Any, **kwargs: Any) -> None:
        """The gradients have been computed along with the loss."""
        for p, g in zip(self.model.parameters(), self._gradients, strict=True):
            if g is not None and g.stride() != p.stride():  # as from autograd; a norm's bits depend on strides
                g = torch.empty_like(p).copy_(g)
            p.grad = g if p.grad is None or g is None else p.grad + g

    def measured(self, split: str, batch: Batch, index: int) -> dict[str, Tensor]:
        return self.meeting.meet(_key("measure", batch), (self, batch), self.together.measure)


class Lockstep(Callback):
    """Lets a member train its steps jointly with the others, see `joint_steps.py`.

    Args:
        member: the member.
        every: steps between two that write.
    """

    def __init__(self, member: "Member", every: int) -> None:
        self.member, self.every = member, every

    def on_train_start(self, trainer: Trainer, module: MemberLearner) -> None:  # type: ignore[override]
        member, follower = self.member, None

        def work(batches: Any) -> int:
            nonlocal follower
            if follower is None:
                follower = Follower(module, trainer, batches, member.finite, member.saver, self.every)
            if not (follower.is_simple() and follower.quiet()):
                return 0
            key = "joint steps", str(trainer.global_step)
            made, notes = module.meeting.meet(key, follower, partial(run_jointly, module.together))
            if notes is not None:
                member.finite.hear(notes)
            return made

        before_every_batch(trainer, work)


class Member(Attempt):
    """Attempt of a member at its run.

    Args:
        run: the run.
        folder: its folder.
        size: number of members.
        first: whether this one shows the progress of all.
        meeting: the `Turns` of all members.
        together: the `Stacked` computation of all members.
    """

    learner_class: ClassVar[type[Learner]] = MemberLearner
    learner: MemberLearner

    def __init__(self, run: Built, folder: Path, size: int, first: bool, meeting: Turns, together: Stacked) -> None:
        super().__init__(run, folder)
        self.size, self.first = size, first
        self.learner.meeting, self.learner.together = meeting, together
        optimizer = self.learner.optimizer
        optimizer.move = partial(meeting.meet, "update", optimizer, update)
        self.callbacks.append(Lockstep(self, self.finite.every))
        if not first:
            self.callbacks = [callback for callback in self.callbacks if not isinstance(callback, Progress)]

    def record(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        self.provenance = {"ensemble": {"members": self.size, "computed": self.learner.together.forms[0]}}
        return super().record(*args, **kwargs)

    def announce(self) -> None:
        if self.first:
            super().announce()


def _key(what: str, batch: Batch) -> Hashable:
    """A key that is the same for members whose batches have the same shapes."""
    return what, tuple((t.shape, t.dtype) for t in batch)
