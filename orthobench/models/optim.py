"""Optimizer with a rule per parameter group.

One object, because Lightning counts steps per optimizer: scoRNN's adding run uses Adam for most parameters and RMSprop
for the skew matrix at the same time. The arguments of a rule are its settings in the configuration. A rule moves a list
of parameters at once, of one run or of several, since a GPU takes longer to start small kernels than to run them.
"""

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from orthobench.common.schema import Fraction, NonNegativeFloat, PositiveFloat
from orthobench.parametrizations.base import parametrizations

Memory = dict[str, Any]
Tensors = list[Tensor]
Pending = tuple["Rule", float, float, Tensor, Tensor, Memory]  # rule, rate, weight decay, parameter, gradient, memory
lists: Any = torch  # torch's functions of lists of tensors, `_foreach_*`, have no types


class Rule(ABC):
    """Rule by which the gradients of some parameters move them. Its fields are its settings in the
    configuration.

    A rule of one's own is a frozen dataclass, so that parameters of the same rule and rate are moved together.

    Attributes:
        weight_decay: what a parameter adds of itself to its gradient; constrained parameters never do.
        decays_matrices_only: whether parameters with less than two dimensions, as biases and gains, have no decay.
        elementwise: whether every number is moved by its own gradients alone, so that an ensemble can give several
            parameters, of several runs, as one; each class says so for itself.
    """

    weight_decay: float = 0.0
    decays_matrices_only: ClassVar[bool] = False
    elementwise: ClassVar[bool] = False

    def decayed(self, p: Tensors, g: Tensors, lr: float, decay: float) -> Tensors:
        """The gradients, of the same shapes, that `step` is given where the weight decay is `decay` > 0; see `step`."""
        return list(lists._foreach_add(g, p, alpha=decay))

    @abstractmethod
    def step(self, p: Tensors, g: Tensors, memory: list[Memory], lr: float) -> None:
        """Move every parameter in place.

        Args:
            p: the parameters, real tensors of any shape (of a complex one real and imaginary parts, (..., 2)).
            g: their gradients, of the same shapes.
            memory: a dictionary per parameter that is kept between steps and saved in checkpoints.
            lr: the learning rate of this step.
        """


@dataclass(frozen=True)
class SGD(Rule):
    """Gradient descent with momentum (Robbins & Monro 1951; Polyak 1964): v <- momentum v + g,  p <- p - lr v.

    Args:
        momentum: the share of the last step that a step keeps.
    """

    elementwise: ClassVar[bool] = True
    momentum: Fraction = 0.0
    weight_decay: NonNegativeFloat = 0.0

    def step(self, p: Tensors, g: Tensors, memory: list[Memory], lr: float) -> None:
        lists._foreach_sub_(p, _with_momentum(g, memory, self.momentum), alpha=lr)


@dataclass(frozen=True)
class Adam(Rule):
    """p <- p - lr m^ / (sqrt(v^) + eps), with bias-corrected moments m^ and v^ (Kingma & Ba 2015, algorithm 1).

    Args:
        beta1: decay of the first moment m.
        beta2: decay of the second moment v.
        eps: number beside the root.
    """

    elementwise: ClassVar[bool] = True
    beta1: Fraction = 0.9
    beta2: Fraction = 0.999
    eps: NonNegativeFloat = 1e-8
    weight_decay: NonNegativeFloat = 0.0

    def step(self, p: Tensors, g: Tensors, memory: list[Memory], lr: float) -> None:
        for one in memory:
            one["steps"] = one.get("steps", 0) + 1
        m, v = _slots(memory, "first", p, 0.0), _slots(memory, "second", p, 0.0)
        lists._foreach_lerp_(m, g, 1 - self.beta1)
        lists._foreach_mul_(v, self.beta2)
        lists._foreach_addcmul_(v, g, g, value=1 - self.beta2)
        denominators = lists._foreach_sqrt(v)
        lists._foreach_div_(denominators, [math.sqrt(1 - self.beta2 ** one["steps"]) for one in memory])
        lists._foreach_add_(denominators, self.eps)
        lists._foreach_addcdiv_(p, m, denominators, [-lr / (1 - self.beta1 ** one["steps"]) for one in memory])


@dataclass(frozen=True)
class Adamw(Adam):
    """Adam behind p <- (1 - lr weight_decay) p, of matrices alone (Loshchilov & Hutter 2019, algorithm 2)."""

    decays_matrices_only: ClassVar[bool] = True
    elementwise: ClassVar[bool] = True
    weight_decay: NonNegativeFloat = 0.01

    def decayed(self, p: Tensors, g: Tensors, lr: float, decay: float) -> Tensors:
        """See `Rule`: the parameters shrink by themselves, and the moments never see it."""
        lists._foreach_mul_(p, 1 - lr * decay)
        return g


@dataclass(frozen=True)
class RMSprop(Rule):
    """RMSprop as in PyTorch and Keras (Tieleman & Hinton 2012).

    a <- decay a + (1 - decay) g^2 from a = 0;  p <- p - lr g / (sqrt(a) + eps).

    Args:
        decay: decay of the mean square a.
        eps: number beside the root.
        momentum: the share of the last step that a step keeps.
    """

    elementwise: ClassVar[bool] = True
    decay: Fraction = 0.99
    eps: NonNegativeFloat = 1e-8
    momentum: Fraction = 0.0
    weight_decay: NonNegativeFloat = 0.0

    def step(self, p: Tensors, g: Tensors, memory: list[Memory], lr: float) -> None:
        roots = lists._foreach_sqrt(_mean_square(memory, p, g, self.decay, 0.0))
        lists._foreach_add_(roots, self.eps)
        update = _with_momentum(lists._foreach_div(g, roots), memory, self.momentum)
        lists._foreach_sub_(p, update, alpha=lr)


@dataclass(frozen=True)
class RMSpropTF(Rule):
    """RMSprop as in TensorFlow 1 (Tieleman & Hinton 2012).

    a <- decay a + (1 - decay) g^2 from a = start;  p <- p - lr g / sqrt(a + eps).
    The start at one is an implicit warm-up: the first steps have size lr |g| instead of lr sqrt(10). Momentum
    gathers lr g / sqrt(a + eps), learning rate included. The uRNN papers' code has start=1e-3 and eps=0,
    which divides zero by zero once a gradient has vanished for a thousand steps: use a tiny eps.

    Args:
        decay: decay of the mean square a.
        eps: number under the root.
        momentum: the share of the last step that a step keeps.
        start: the mean square before the first step.
    """

    elementwise: ClassVar[bool] = True
    decay: Fraction = 0.9
    eps: NonNegativeFloat = 1e-10
    momentum: Fraction = 0.0
    weight_decay: NonNegativeFloat = 0.0
    start: PositiveFloat = 1.0

    def step(self, p: Tensors, g: Tensors, memory: list[Memory], lr: float) -> None:
        roots = lists._foreach_add(_mean_square(memory, p, g, self.decay, self.start), self.eps)
        lists._foreach_sqrt_(roots)
        update = lists._foreach_div(lists._foreach_mul(g, lr), roots)
        lists._foreach_sub_(p, _with_momentum(update, memory, self.momentum))


class Optimizer(torch.optim.Optimizer):
    """Every group carries its own `rule`, `lr` and `name`; see `groups`.

    Attributes:
        move: what a step does with the gradients: `update` of this optimizer, unless it is set to another.
    """

    # without the wrapper of torch's own, which imports its compiler, a third of a short run, to be kept out of it
    _add_param_group = inspect.unwrap(torch.optim.Optimizer.add_param_group)
    state_dict = inspect.unwrap(torch.optim.Optimizer.state_dict)
    load_state_dict = inspect.unwrap(torch.optim.Optimizer.load_state_dict)
    zero_grad = inspect.unwrap(torch.optim.Optimizer.zero_grad)

    def __init__(self, groups: Iterable[dict[str, Any]]) -> None:
        super().__init__(list(groups), {})
        self._rules: list[Rule] = [group.pop("rule") for group in self.param_groups]
        self.move: Callable[[], Any] = lambda: update([self])

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_rules": self._rules}

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group with its `rule`, `lr`, `name` and whether it is `constrained`; see `groups`.

        Raises:
            ValueError: one of these is missing.
        """
        missing = [key for key in ("rule", "lr", "name", "constrained") if key not in param_group]
        if missing:
            raise ValueError(f"a group of parameters needs its {missing[0]}, as those that `groups` makes have.")
        self._add_param_group(param_group)
        if hasattr(self, "_rules"):
            self._rules.append(self.param_groups[-1].pop("rule"))

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.move = lambda: update([self])

    @torch.no_grad()
    def step(self, closure: Callable[[], Tensor] | None = None) -> Tensor | None:  # type: ignore[override]
        """Make one step of every group by its own rule."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self.move()
        return loss

    def settings(self) -> dict[int, tuple[Rule, float, float]]:
        """Rule, rate before any schedule, and weight decay of every parameter, by its id."""
        return {
            id(p): (rule, group.get("initial_lr", group["lr"]), _decay(rule, group, p))
            for rule, group in zip(self._rules, self.param_groups, strict=True)
            for p in group["params"]
        }

    def pending(self) -> Iterator[Pending]:
        """Pending moves of every parameter that has a gradient."""
        for rule, group in zip(self._rules, self.param_groups, strict=True):
            for p in group["params"]:
                if p.grad is not None:
                    yield rule, group["lr"], _decay(rule, group, p), as_real(p), as_real(p.grad), self.state[p]


def update(optimizers: list[Optimizer]) -> list[None]:
    """Move the parameters of all optimizers, those with the same rule, rate and weight decay together."""
    move(one for optimizer in optimizers for one in optimizer.pending())
    return [None] * len(optimizers)


def move(pending: Iterable[Pending]) -> None:
    """Move parameters, those with the same rule, rate and weight decay together."""
    alike: dict[tuple[Rule, float, float], list[tuple[Tensor, Tensor, Memory]]] = {}
    for rule, lr, decay, p, g, memory in pending:
        alike.setdefault((rule, lr, decay), []).append((p, g, memory))
    for (rule, lr, decay), found in alike.items():
        parameters, gradients, memories = map(list, zip(*found, strict=True))
        if decay:
            gradients = rule.decayed(parameters, gradients, lr, decay)
        rule.step(parameters, gradients, memories, lr)


def _decay(rule: Rule, group: dict[str, Any], p: Tensor) -> float:
    """The weight decay of a parameter: its group's own, or the rule's where the group may have one."""
    if "decay" in group:
        return group["decay"]
    return 0.0 if group["constrained"] or (rule.decays_matrices_only and p.dim() < 2) else rule.weight_decay


def groups(model: Any, rule: Rule, lr: float, recurrent_rule: Rule, lr_recurrent: float) -> list[dict[str, Any]]:
    """Parameter groups of a model: the constrained parameters by one rule and rate, all others by another.

    The `learning_rate_scales` of a parametrization or a cell give a parameter a group of its own, and so does the
    weight decay of a parameter that a parametrization leaves `at_free_rate`.
    """
    inside: dict[int, float] = {}
    decays: dict[int, float] = {}
    for parametrization in model.constrained():
        scales, at_free_rate = parametrization.learning_rate_scales(), parametrization.at_free_rate()
        for name, p in parametrization.named_parameters():
            if name not in at_free_rate:
                inside[id(p)] = scales.get(name, 1.0)
            elif at_free_rate[name] is not None:
                decays[id(p)] = at_free_rate[name]
    free = [found for found in parametrizations(model) if not found.constrained]
    slow = {
        id(p): scales[name]
        for module in (*free, *getattr(model, "cells", ()))
        if (scales := module.learning_rate_scales())
        for name, p in module.named_parameters()
        if name in scales and id(p) not in inside
    }
    parameters = list(model.parameters())
    others = [p for p in parameters if not any(id(p) in known for known in (inside, slow, decays))]
    found = [{"name": "free", "params": others, "lr": lr, "rule": rule, "constrained": False}] if others else []
    for decay in sorted(set(decays.values())):
        chosen = [p for p in parameters if decays.get(id(p)) == decay]
        group = {"name": f"free, decay {decay:g}", "params": chosen, "lr": lr, "rule": rule, "constrained": False}
        found.append({**group, "decay": decay})
    for scale in sorted(set(slow.values()), reverse=True):
        chosen = [p for p in parameters if slow.get(id(p)) == scale]
        # marked as constrained, because these have no weight decay either
        found.append(
            {"name": f"free x {scale:g}", "params": chosen, "lr": lr * scale, "rule": rule, "constrained": True}
        )
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


def as_real(p: Tensor) -> Tensor:
    """Real and imaginary parts of a complex tensor as two numbers, each with averages of its own (as torch does)."""
    return torch.view_as_real(p.resolve_conj()) if p.is_complex() else p


def _slots(memory: list[Memory], name: str, like: Tensors, start: float) -> Tensors:
    for one, p in zip(memory, like, strict=True):
        if name not in one:
            one[name] = torch.full_like(p, start)
    return [one[name] for one in memory]


def _mean_square(memory: list[Memory], p: Tensors, g: Tensors, decay: float, start: float) -> Tensors:
    """The running mean a of g^2, a <- decay a + (1 - decay) g^2, from a = start."""
    a = _slots(memory, "square", p, start)
    lists._foreach_mul_(a, decay)
    lists._foreach_addcmul_(a, g, g, value=1 - decay)
    return a


def _with_momentum(update: Tensors, memory: list[Memory], momentum: float) -> Tensors:
    if not momentum:
        return update
    velocity = _slots(memory, "velocity", update, 0.0)
    lists._foreach_mul_(velocity, momentum)
    lists._foreach_add_(velocity, update)
    return velocity
