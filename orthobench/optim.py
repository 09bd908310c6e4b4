"""One optimizer with a rule per parameter group, and learning-rate schedules.

One object, because Lightning counts steps per optimizer: scoRNN's adding run uses Adam for most parameters and RMSprop
for the skew matrix at the same time. The arguments of a rule are its settings in the configuration.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from orthobench.schema import Fraction, NonNegativeFloat, PositiveFloat

Memory = dict[str, Any]


@dataclass(frozen=True)
class SGD:
    """p <- p - lr v,  v <- momentum v + g."""

    momentum: Fraction = 0.0
    weight_decay: NonNegativeFloat = 0.0

    def step(self, p: Tensor, g: Tensor, memory: Memory, lr: float) -> None:
        """Move p in place."""
        p.sub_(_with_momentum(g, memory, self.momentum), alpha=lr)


@dataclass(frozen=True)
class Adam:
    """p <- p - lr m^ / (sqrt(v^) + eps), with bias-corrected moments (Kingma & Ba 2015, algorithm 1)."""

    beta1: Fraction = 0.9
    beta2: Fraction = 0.999
    eps: NonNegativeFloat = 1e-8
    weight_decay: NonNegativeFloat = 0.0

    def step(self, p: Tensor, g: Tensor, memory: Memory, lr: float) -> None:
        """Move p in place."""
        t = memory["steps"] = memory.get("steps", 0) + 1
        m = _slot(memory, "first", p, 0.0).lerp_(g, 1 - self.beta1)
        v = _slot(memory, "second", p, 0.0).mul_(self.beta2).addcmul_(g, g, value=1 - self.beta2)
        denominator = (v.sqrt() / math.sqrt(1 - self.beta2**t)).add_(self.eps)
        p.addcdiv_(m, denominator, value=-lr / (1 - self.beta1**t))


@dataclass(frozen=True)
class RMSprop:
    """a <- decay a + (1 - decay) g^2 from a = 0;  p <- p - lr g / (sqrt(a) + eps), as in PyTorch and Keras."""

    decay: Fraction = 0.99
    eps: NonNegativeFloat = 1e-8
    momentum: Fraction = 0.0
    weight_decay: NonNegativeFloat = 0.0

    def step(self, p: Tensor, g: Tensor, memory: Memory, lr: float) -> None:
        """Move p in place."""
        a = _slot(memory, "square", p, 0.0).mul_(self.decay).addcmul_(g, g, value=1 - self.decay)
        p.sub_(_with_momentum(g / a.sqrt().add_(self.eps), memory, self.momentum), alpha=lr)


@dataclass(frozen=True)
class RMSpropTF:
    """a <- decay a + (1 - decay) g^2 from a = start;  p <- p - lr g / sqrt(a + eps), as in TensorFlow 1.

    The start at one is an implicit warm-up: the first steps have size lr |g| instead of lr sqrt(10). Momentum
    gathers lr g / sqrt(a + eps), learning rate included. The uRNN papers' code has start=1e-3 and eps=0,
    which divides zero by zero once a gradient has vanished for a thousand steps: use a tiny eps.
    """

    decay: Fraction = 0.9
    eps: NonNegativeFloat = 1e-10
    momentum: Fraction = 0.0
    weight_decay: NonNegativeFloat = 0.0
    start: PositiveFloat = 1.0

    def step(self, p: Tensor, g: Tensor, memory: Memory, lr: float) -> None:
        """Move p in place."""
        a = _slot(memory, "square", p, self.start).mul_(self.decay).addcmul_(g, g, value=1 - self.decay)
        p.sub_(_with_momentum(lr * g / a.add(self.eps).sqrt_(), memory, self.momentum))


Rule = SGD | Adam | RMSprop | RMSpropTF
RULES: dict[str, type[Rule]] = {"adam": Adam, "sgd": SGD, "rmsprop": RMSprop, "rmsprop_tf": RMSpropTF}


class Optimizer(torch.optim.Optimizer):
    """Every group carries its own `rule`, `lr` and `name`; see `groups`."""

    def __init__(self, groups: Iterable[dict[str, Any]]) -> None:
        super().__init__(list(groups), {})
        self._rules: list[Rule] = [group.pop("rule") for group in self.param_groups]

    @torch.no_grad()
    def step(self, closure: Callable[[], Tensor] | None = None) -> Tensor | None:  # type: ignore[override]
        """One step of every group by its own rule."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for rule, group in zip(self._rules, self.param_groups, strict=True):
            decay = 0.0 if group["constrained"] else rule.weight_decay
            for p in group["params"]:
                if p.grad is not None:
                    g = p.grad.add(p, alpha=decay) if decay else p.grad
                    rule.step(_as_real(p), _as_real(g), self.state[p], group["lr"])
        return loss


def groups(model: Any, rule: Rule, lr: float, recurrent_rule: Rule, lr_recurrent: float) -> list[dict[str, Any]]:
    """Parameter groups of a model: the constrained parameters by one rule and rate, all others by another.

    A parametrization's `learning_rate_scales` gives a parameter a group of its own.
    """
    inside: dict[int, float] = {}
    for parametrization in model.constrained():
        scales = parametrization.learning_rate_scales()
        for name, p in parametrization.named_parameters():
            inside[id(p)] = scales.get(name, 1.0)
    parameters = list(model.parameters())
    others = [p for p in parameters if id(p) not in inside]
    found = [{"name": "free", "params": others, "lr": lr, "rule": rule, "constrained": False}] if others else []
    for scale in sorted(set(inside.values()), reverse=True):
        chosen = [p for p in parameters if inside.get(id(p)) == scale]
        name = "recurrent" if scale == 1.0 else f"recurrent x {scale:g}"
        group = {
            "name": name,
            "params": chosen,
            "lr": lr_recurrent * scale,
            "rule": recurrent_rule,
            "constrained": True,
        }
        found.append(group)
    return found


@dataclass(frozen=True)
class Constant:
    """The learning rate as it is."""

    def factor(self, step: int, steps: int, epoch: int) -> float:
        """What multiplies the learning rate of step `step` of `steps`, in epoch `epoch`; all count from 0."""
        return 1.0


@dataclass(frozen=True)
class Linear:
    """From the learning rate to zero over the whole run."""

    def factor(self, step: int, steps: int, epoch: int) -> float:
        """See `Constant.factor`."""
        return max(1 - step / steps, 0.0)


@dataclass(frozen=True)
class Step:
    """Times gamma at each of the milestones, counted in epochs from 0."""

    gamma: PositiveFloat = 0.1
    milestones: list[int] = (200,)  # type: ignore[assignment]

    def factor(self, step: int, steps: int, epoch: int) -> float:
        """See `Constant.factor`."""
        return self.gamma ** sum(epoch >= milestone for milestone in self.milestones)


@dataclass(frozen=True)
class Exponential:
    """Times gamma after every epoch."""

    gamma: PositiveFloat = 0.8

    def factor(self, step: int, steps: int, epoch: int) -> float:
        """See `Constant.factor`."""
        return self.gamma**epoch


Schedule = Constant | Linear | Step | Exponential
SCHEDULES: dict[str, type[Schedule]] = {
    "constant": Constant,
    "linear": Linear,
    "step": Step,
    "exponential": Exponential,
}


def _as_real(p: Tensor) -> Tensor:
    """Real and imaginary parts of a complex tensor as two numbers, each with averages of its own (as torch does)."""
    return torch.view_as_real(p.resolve_conj()) if p.is_complex() else p


def _slot(memory: Memory, name: str, p: Tensor, start: float) -> Tensor:
    if name not in memory:
        memory[name] = torch.full_like(p, start)
    return memory[name]


def _with_momentum(update: Tensor, memory: Memory, momentum: float) -> Tensor:
    if not momentum:
        return update
    return _slot(memory, "velocity", update, 0.0).mul_(momentum).add_(update)
