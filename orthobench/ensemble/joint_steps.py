"""Steps of all members at once between two steps at which anything is written, without Python for each member.

Parameters, gradients and the optimizer's memory are packed once, (S, M), and every operation of a step (loss and
gradients, the look for numbers that are not finite, clipping, the optimizer's rule) is one for all members and
parameters. Schedules are asked once, and batches come drawn (`feed.py`). At the step that writes, validates, saves or
ends, every member goes through its own loop again.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from orthobench.common import signals
from orthobench.ensemble.feed import Feed
from orthobench.ensemble.packed import Pack, Packed
from orthobench.ensemble.stacked import Stacked
from orthobench.models.optim import Memory, Pending, lists, move
from orthobench.parametrizations.base import Parametrization
from orthobench.run.callbacks.finite import Finite
from orthobench.run.callbacks.lie_algebra import LieAlgebra
from orthobench.run.callbacks.neumann import NeumannNorm
from orthobench.run.callbacks.orthogonality import Orthogonality
from orthobench.run.callbacks.progress import Progress
from orthobench.run.callbacks.saver import Saver
from orthobench.run.callbacks.singular_values import SingularValues
from orthobench.run.callbacks.training import TrainingLog
from orthobench.run.learner import Learner
from orthobench.run.trainer import hooked_at_every_step
from orthobench.tasks.base import Batch

BETWEEN = (
    Finite,
    LieAlgebra,
    NeumannNorm,
    Orthogonality,
    Progress,
    Saver,
    SingularValues,
    TrainingLog,
)  # they wait for the step that writes
EPSILON = 1e-6  # of torch.nn.utils.clip_grad_norm_


@dataclass
class Follower:
    """Member of an ensemble, as far as the steps between need it.

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
        """Number of steps before the next that writes, validates, saves or ends the run."""
        length, step = self.learner.duration, self.trainer.global_step
        if length.accumulate > 1 or self.trainer.fit_loop.epoch_loop.restarting or self.saver.restores:
            return 0
        ends = [step + period - step % period for period in (self.every, length.val_every)]
        return max(min([*ends, *([length.steps] if length.steps else [])]) - step - 1, 0)

    def is_simple(self) -> bool:
        """Return True if every step is the optimizer's, and what parametrizations do after it, and nothing else."""
        watchers = [owner for owner in self.trainer.callbacks if hooked_at_every_step(owner)]
        return (
            self.learner.task.T is not None
            and all(isinstance(owner, BETWEEN) for owner in watchers)
            and not any(isinstance(module, nn.modules.batchnorm._BatchNorm) for module in self.learner.model.modules())
        )

    def batch(self) -> Batch:
        """The next batch, on the CPU."""
        batch, _, _ = next(self.batches)
        return self.trainer.precision_plugin.convert_input(batch)


def run_jointly(together: Stacked, followers: list[Follower]) -> list[tuple[int, Any]]:
    """Train all members up to the step before the next that writes.

    Returns:
        For each member the number of steps, and what was noted of numbers that are not finite (see `Finite.hear`).
    """
    steps, first = min(follower.quiet() for follower in followers), followers[0]
    learners = [follower.learner for follower in followers]
    if steps < 1 or not together.whole(len(followers)) or not _alike(learners):
        return [(0, None)] * len(followers)
    packed, made, notes = together.packed(learners), 0, _Notes(followers)
    moved = [Moved(pack, learners) for pack in packed.packs]
    settles = any(type(p).after_step is not Parametrization.after_step for p in learners[0].model.parametrizations())
    if together.feed is None:
        together.feed = Feed(len(followers), first.learner.device)
    wanted = lambda: signals.asked() is None and not first.saver.is_due()  # noqa: E731
    for batch in together.feed.batches([follower.batch for follower in followers], steps, wanted):
        with first.trainer.precision_plugin.train_step_context():
            losses, gradients = together.gradients(learners, packed, batch)
        with torch.no_grad():
            norms = _norms(gradients)
            notes.look(losses, norms, first.trainer.global_step + made + 1)
            _clip(gradients, norms, first.trainer)
            factor = first.learner.factor(first.trainer.global_step + made)
            move(one.pending(g, factor) for one, g in zip(moved, gradients, strict=True))
            if settles:
                _settle(packed, learners, gradients, factor)
        made += 1
    packed.store([learner.model for learner in learners])
    for one in moved:
        one.return_to_members()
    return [(made, notes.of(i)) for i in range(len(followers))]


class Moved:
    """The memory of all members' optimizers for one pack of parameters, which moves as one.

    Args:
        pack: the parameters.
        learners: the members' learners.
    """

    def __init__(self, pack: Pack, learners: list[Learner]) -> None:
        self.pack = pack
        own = [[learner.model.get_parameter(name) for name in pack.names] for learner in learners]
        self.states = [[one.optimizer.state[p] for p in ps] for one, ps in zip(learners, own, strict=True)]
        self.rule, self.rate, self.decay = learners[0].optimizer.settings()[id(own[0][0])]
        self.memory: Memory = {
            key: pack.joined([[state[key] for state in row] for row in self.states]) if isinstance(v, Tensor) else v
            for key, v in self.states[0][0].items()
        }

    def pending(self, gradient: Tensor, factor: float) -> Pending:
        """Step at the rate times `factor`."""
        return self.rule, self.rate * factor, self.decay, self.pack.values.detach(), gradient, self.memory

    @torch.no_grad()
    def return_to_members(self) -> None:
        """Write the memory back into the members' optimizers."""
        for key, value in self.memory.items():
            if isinstance(value, Tensor):
                for states, row in zip(self.states, self.pack.rows(value), strict=True):
                    lists._foreach_copy_([state[key] for state in states], row)
            else:
                for states in self.states:
                    for state in states:
                        state[key] = value


class _Notes:
    """The first step of every member at which a number was not finite, and the last finite loss before it, (S,)."""

    def __init__(self, followers: list[Follower]) -> None:
        found = [follower.finite.notes(next(follower.learner.model.parameters())) for follower in followers]
        self.first, self.last = (torch.stack(part) for part in zip(*found, strict=True))

    def look(self, losses: Tensor, norms: Tensor, step: int) -> None:
        """Note what happens at one step; nothing is read."""
        before, finite = self.first < 0, torch.isfinite(losses)
        self.last = torch.where(before & finite, losses.to(self.last.dtype), self.last)
        self.first = torch.where(before & ~(finite & torch.isfinite(norms)), step, self.first)

    def of(self, i: int) -> tuple[Tensor, Tensor]:
        """Notes of a member."""
        return self.first[i].clone(), self.last[i].clone()


def _alike(learners: list[Learner]) -> bool:
    """Return True if members have the same rules, rates and steps behind them, so that all can be moved as one."""
    kinds: list[Any] = []
    for learner in learners:
        settings, state = learner.optimizer.settings(), learner.optimizer.state
        for p in learner.model.parameters():
            kept = {key: None if isinstance(v, Tensor) else v for key, v in state.get(p, {}).items()}
            kinds.append((settings[id(p)], kept))
    first, rules = kinds[: len(kinds) // len(learners)], {kind[0] for kind, _ in kinds}
    moved = [kind for kind in first if kind[1]]
    return (
        kinds == first * len(learners)
        and all(vars(type(rule)).get("elementwise", False) for rule in rules)
        and all(kept == other for kind, kept in moved for known, other in moved if kind == known)
    )


def _settle(packed: Packed, learners: list[Learner], gradients: list[Tensor], factor: float) -> None:
    """Let the members' parametrizations do what they do after a step, and take over what that has changed."""
    models = [learner.model for learner in learners]
    packed.store(models)
    for pack, found in zip(packed.packs, gradients, strict=True):
        for name, rows in pack.gradients(found).items():
            for model, g in zip(models, rows, strict=True):
                model.get_parameter(name).grad = g
    for learner in learners:
        for group in learner.optimizer.param_groups:
            group["lr"] = group.get("initial_lr", group["lr"]) * factor
        learner.after_step()
        for p in learner.model.parameters():
            p.grad = None
    packed.load(models)


def _norms(gradients: list[Tensor]) -> Tensor:
    """The norm of every member's gradient, (S,)."""
    found = [torch.linalg.vector_norm(g, dim=1) for g in gradients]
    return found[0] if len(found) == 1 else torch.linalg.vector_norm(torch.stack(found), dim=0)


def _clip(gradients: list[Tensor], norms: Tensor, trainer: Any) -> None:
    """Clip every member's gradient in place, as `trainer.gradient_clip_val` says."""
    bound = trainer.gradient_clip_val
    if not bound:
        return
    if trainer.gradient_clip_algorithm == "value":
        lists._foreach_clamp_min_(gradients, -bound)
        lists._foreach_clamp_max_(gradients, bound)
    else:
        scale = (bound / (norms + EPSILON)).clamp(max=1.0)[:, None]
        for g in gradients:
            g.mul_(scale)
