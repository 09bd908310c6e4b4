"""Steps of all members at once between two steps at which anything is written, without Python for each member.

Parameters, gradients and the optimizer's memory are stacked once, (S, ...), and every operation of a step (loss and
gradients, the look for numbers that are not finite, clipping, the optimizer's rule) is one for all members. Schedules
are asked once. At the step that writes, validates, saves or ends, every member goes through its own loop again.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from orthobench import signals
from orthobench.ensemble.stacked import Stacked, stacked
from orthobench.optim import Memory, Rule, as_real, lists, move
from orthobench.parametrizations.base import Parametrization
from orthobench.run.callbacks.finite import Finite
from orthobench.run.callbacks.orthogonality import Orthogonality
from orthobench.run.callbacks.progress import Progress
from orthobench.run.callbacks.saver import Saver
from orthobench.run.callbacks.singular_values import SingularValues
from orthobench.run.callbacks.training import TrainingLog
from orthobench.run.learner import Learner
from orthobench.run.trainer import hooked_at_every_step
from orthobench.tasks.base import Batch

BETWEEN = (Finite, Orthogonality, Progress, Saver, SingularValues, TrainingLog)  # they wait for the step that writes
EPSILON = 1e-6  # of torch.nn.utils.clip_grad_norm_


@dataclass
class Follower:
    """One member, as far as the steps between need it.

    Attributes:
        learner: its learner.
        trainer: its trainer, which is training.
        batches: the trainer's source of batches.
        finite: its look for numbers that are not finite.
        saver: what tells whether a checkpoint is due.
        every: steps between two that write.
    """

    learner: Learner
    trainer: Any
    batches: Any
    finite: Finite
    saver: Saver
    every: int

    def quiet(self) -> int:
        """How many steps can be made before the next that writes, validates, saves or ends the run."""
        length, step = self.learner.duration, self.trainer.global_step
        if length.accumulate > 1 or self.trainer.fit_loop.epoch_loop.restarting or self.saver.restores:
            return 0
        ends = [step + period - step % period for period in (self.every, length.val_every)]
        return max(min([*ends, *([length.steps] if length.steps else [])]) - step - 1, 0)

    def is_simple(self) -> bool:
        """Whether nothing but the optimizer's step has to be done at every step."""
        watchers = [owner for owner in self.trainer.callbacks if hooked_at_every_step(owner)]
        maps = self.learner.model.parametrizations()
        return (
            self.learner.task.T is not None
            and all(isinstance(owner, BETWEEN) for owner in watchers)
            and all(type(p).after_step is Parametrization.after_step for p in maps)
            and not any(isinstance(module, nn.modules.batchnorm._BatchNorm) for module in self.learner.model.modules())
        )

    def batch(self) -> Batch:
        """The next batch, on the member's device."""
        batch, _, _ = next(self.batches)
        return self.trainer.strategy.batch_to_device(self.trainer.precision_plugin.convert_input(batch), None)


def run_ahead(together: Stacked, followers: list[Follower]) -> list[tuple[int, Any]]:
    """Train all members up to the step before the next that writes.

    Returns:
        For each member the number of steps, and what was noted of numbers that are not finite (see `Finite.hear`).
    """
    steps = min(follower.quiet() for follower in followers)
    moved = None if steps < 1 or not together.whole(len(followers)) else Moved.of([f.learner for f in followers])
    if moved is None:
        return [(0, None)] * len(followers)
    first, made, notes = followers[0], 0, _Notes(followers)
    buffers = stacked([f.learner.model for f in followers], nn.Module.named_buffers)
    while made < steps and signals.asked() is None and not first.saver.is_due():
        batches = [follower.batch() for follower in followers]
        with first.trainer.precision_plugin.train_step_context():
            losses, gradients = together.gradients([f.learner for f in followers], moved.leaves, buffers, batches)
        with torch.no_grad():
            norms = [_norms(g) for g in gradients if g is not None]
            notes.look(losses, norms, first.trainer.global_step + made + 1)
            _clip([g for g in gradients if g is not None], norms, first.trainer)
            moved.step(gradients, _factor(first.learner, first.trainer.global_step + made))
        made += 1
    moved.return_to_members()
    return [(made, notes.of(i)) for i in range(len(followers))]


class Moved:
    """Parameters and memory of all members' optimizers, stacked, which move together.

    Attributes:
        leaves: the parameters by name, (S, ...).
    """

    def __init__(self, learners: list[Learner], rules: list[tuple[Rule, float, float]]) -> None:
        self.learners, self.rules = learners, rules
        models = [learner.model for learner in learners]
        self.leaves = {n: p.requires_grad_() for n, p in stacked(models, nn.Module.named_parameters).items()}
        own = [learner.optimizer.state for learner in learners]
        self.members = [[m.get_parameter(name) for m in models] for name in self.leaves]
        self.memory = [_joined([state.get(p, {}) for state, p in zip(own, ps, strict=True)]) for ps in self.members]

    @classmethod
    def of(cls, learners: list[Learner]) -> "Moved | None":
        """Null where members differ in rules, rates or steps, so that each must be moved by itself."""
        rules: list[list[tuple[Rule, float, float]]] = []
        for learner in learners:
            of_parameter = learner.optimizer.settings()
            rules.append([of_parameter[id(p)] for p in learner.model.parameters()])
        counts = [
            [[v for v in learner.optimizer.state.get(p, {}).values() if not isinstance(v, Tensor)] for p in ps]
            for learner, ps in ((one, list(one.model.parameters())) for one in learners)
        ]
        alike = all(rule == rules[0] for rule in rules) and all(count == counts[0] for count in counts)
        return cls(learners, rules[0]) if alike else None

    def step(self, gradients: list[Tensor | None], factor: float) -> None:
        """One step of every rule, at its rate times `factor`."""
        own = zip(self.leaves.values(), gradients, self.memory, self.rules, strict=True)
        move(
            (rule, rate * factor, decay, as_real(p), as_real(g), memory)
            for p, g, memory, (rule, rate, decay) in own
            if g is not None
        )

    @torch.no_grad()
    def return_to_members(self) -> None:
        """Write the stacked parameters and memories back into the members."""
        for p, members, memory in zip(self.leaves.values(), self.members, self.memory, strict=True):
            lists._foreach_copy_(members, list(p.unbind()))
            for i, (learner, own) in enumerate(zip(self.learners, members, strict=True)):
                for key, value in memory.items():
                    learner.optimizer.state[own][key] = value[i].clone() if isinstance(value, Tensor) else value


class _Notes:
    """The first step of every member at which a number was not finite, and the last finite loss before it, (S,)."""

    def __init__(self, followers: list[Follower]) -> None:
        found = [follower.finite.notes(next(follower.learner.model.parameters())) for follower in followers]
        self.first, self.last = (torch.stack(part) for part in zip(*found, strict=True))

    def look(self, losses: Tensor, norms: list[Tensor], step: int) -> None:
        """Note what happens at one step; nothing is read."""
        before = self.first < 0
        good = torch.isfinite(torch.stack([losses, *norms])).all(0)
        self.last = torch.where(before & torch.isfinite(losses), losses.to(self.last.dtype), self.last)
        self.first = torch.where(before & ~good, step, self.first)

    def of(self, i: int) -> tuple[Tensor, Tensor]:
        """One member's notes."""
        return self.first[i].clone(), self.last[i].clone()


def _factor(learner: Learner, step: int) -> float:
    """What the schedule multiplies the rates of a step by."""
    length = learner.duration
    return learner.schedule.factor(step, length.steps or step + 1, length.epochs(step))


def _joined(memories: list[Memory]) -> Memory:
    return {
        key: torch.stack([memory[key] for memory in memories]) if isinstance(value, Tensor) else value
        for key, value in memories[0].items()
    }


def _norms(g: Tensor) -> Tensor:
    """The norm of every member's gradient, (S,)."""
    return torch.linalg.vector_norm(g.flatten(1), dim=1)


def _clip(gradients: list[Tensor], norms: list[Tensor], trainer: Any) -> None:
    """Clip every member's gradient in place, as `trainer.gradient_clip_val` says."""
    bound = trainer.gradient_clip_val
    if not bound or not gradients:
        return
    if trainer.gradient_clip_algorithm == "value":
        for g in gradients:
            g.clamp_(-bound, bound)
        return
    total = torch.linalg.vector_norm(torch.stack(norms), dim=0)
    scale = (bound / (total + EPSILON)).clamp(max=1.0)
    for g in gradients:
        g.mul_(scale.view(-1, *[1] * (g.dim() - 1)))
