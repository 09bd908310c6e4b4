"""Loss, gradients and measurements of S models of one shape at once: parameters (S, ...), batches (S, B, ...).

The plain computation of one model is mapped over the members by torch.func.vmap, so that cells and tasks need no code
of their own for it. A parametrization that cannot be mapped, because it reads its base point or inverse, computes its
matrix member by member outside the map. A model that cannot be mapped at all is computed one member after the other.

On a CPU the stacked arithmetic differs from that of single runs in the last bits: a stacked matrix product (bmm) is
split into other blocks than a single one and adds a bias afterwards (addmm adds it first). Members are therefore
computed one by one on a CPU; see `forms`.
"""

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from orthobench.models.base import Network
from orthobench.parametrizations.accumulated import accumulated
from orthobench.parametrizations.base import Parametrization
from orthobench.run.learner import Learner
from orthobench.tasks.base import Batch
from orthobench.terminal import say

Request = tuple[Learner, Batch]
Trained = tuple[Tensor, list[Tensor | None]]
NamedTensors = dict[str, Tensor]
STACKED = ("stacked", "stacked, engine=reference", "apart")


def forms(device: torch.device) -> tuple[str, ...]:
    """The ways to compute, best first; a CPU does not stack, which would gain nothing and change the last bits."""
    return STACKED if device.type == "cuda" else STACKED[-1:]


class Stacked:
    """The computations that members of one shape share.

    Attributes:
        forms: the ways to compute that have not failed; the first of them is used.
        at_most: how many members fit into memory at once, as far as is known.

    Args:
        model: the model of any member.
        forms: the ways to compute, see the function `forms`.
    """

    def __init__(self, model: Network, forms: tuple[str, ...]) -> None:
        self.forms, self.at_most = list(forms), 1 << 30
        self._trained = 0
        self._template = copy.deepcopy(model)
        self._engine: Any = getattr(model, "engine", "auto")
        inside = [name for name, module in model.named_modules() if isinstance(module, Parametrization)]
        self._maps = {name: True for name in inside if not name.startswith(tuple(f"{other}." for other in inside))}
        for name in self._maps:
            parent, _, own = name.rpartition(".")
            self._template.get_submodule(parent).register_module(own, _Given())

    def train(self, requests: list[Request]) -> list[Trained]:
        """The loss and the gradient of every parameter, in the order of `model.parameters()`, per member."""
        return self._whatever_works(requests, _train_one, self._train)

    def measure(self, requests: list[Request]) -> list[dict[str, Tensor]]:
        """The result of `task.measure` on a batch, per member."""
        return self._whatever_works(requests, _measure_one, self._measure)

    def _whatever_works(
        self, requests: list[Request], one: Callable[[Request], Any], many: Callable[[list[Request]], Any]
    ) -> list[Any]:
        found: list[Any] = []
        while len(found) < len(requests):
            chunk = requests[len(found) :][: self.at_most]
            if len(requests) == 1 or self.forms[0] == "apart":
                return [one(request) for request in requests]
            self._template.engine = "reference" if "reference" in self.forms[0] else self._engine  # type: ignore[assignment]
            try:
                found += many(chunk)
            except torch.OutOfMemoryError:
                if len(chunk) == 1:
                    raise
                self.at_most = len(chunk) // 2
                say(f"{len(chunk)} members at once do not fit in memory; {self.at_most} at once from here on")
            except (RuntimeError, ValueError) as error:  # the next form shows whether the run itself causes the error
                reason = str(error).split("\n")[0]
                say(f"members cannot be computed {self.forms.pop(0)} ({reason}); {self.forms[0]} instead")
        return found

    def _train(self, requests: list[Request]) -> list[Trained]:
        learner = requests[0][0]
        if learner.duration.accumulate > 1 and accumulated(learner.model):
            raise RuntimeError("gradients of matrices are clipped or scaled over several batches")
        learners, models = [one for one, _ in requests], [one.model for one, _ in requests]
        leaves = {name: leaf.requires_grad_() for name, leaf in stacked(models, nn.Module.named_parameters).items()}
        buffers = stacked(models, nn.Module.named_buffers)
        losses, gradients = self.gradients(learners, leaves, buffers, [batch for _, batch in requests])
        self._trained = len(requests)
        rows = [[None] * len(requests) if g is None else g.unbind() for g in gradients]
        return list(zip(losses.unbind(), map(list, zip(*rows, strict=True)), strict=True))

    def whole(self, members: int) -> bool:
        """Whether so many members have been computed stacked, and all at once."""
        return 1 < members <= min(self.at_most, self._trained) and self.forms[0] != "apart"

    def gradients(
        self, learners: list[Learner], leaves: NamedTensors, buffers: NamedTensors, batches: list[Batch]
    ) -> tuple[Tensor, list[Tensor | None]]:
        """The losses (S,), and the gradient (S, ...) of every one of the stacked parameters, null where it has none."""
        task, accumulate = learners[0].task, learners[0].duration.accumulate
        y, targets = self._outputs([learner.model for learner in learners], leaves, buffers, batches)
        losses = vmap(task.loss)(y, *targets) + self._penalties(learners[0].model, leaves)
        found = torch.autograd.grad((losses / accumulate).sum(), list(leaves.values()), allow_unused=True)
        return losses.detach(), list(found)

    def _penalties(self, model: nn.Module, leaves: NamedTensors) -> Tensor | float:
        """What is added to every member's loss, (S,)."""
        total: Tensor | float = 0.0
        for name in self._maps:
            penalty = _Penalty(model.get_submodule(name))
            if penalty() is not None:
                own = {f"map.{key}": leaves[f"{name}.{key}"] for key, _ in model.get_submodule(name).named_parameters()}
                total = total + vmap(partial(functional_call, penalty, args=()))(own)
        return total

    def _measure(self, requests: list[Request]) -> list[dict[str, Tensor]]:
        models = [one.model for one, _ in requests]
        parameters, buffers = stacked(models, nn.Module.named_parameters), stacked(models, nn.Module.named_buffers)
        y, targets = self._outputs(models, parameters, buffers, [batch for _, batch in requests])
        values = vmap(requests[0][0].task.measure)(y, *targets)
        return [{name: value[i] for name, value in values.items()} for i in range(len(requests))]

    def _outputs(
        self, models: list[Any], parameters: NamedTensors, buffers: NamedTensors, batches: list[Batch]
    ) -> tuple[Tensor, list[Tensor]]:
        """Outputs (S, B, ...), targets and masks."""
        tensors = parameters | buffers
        x, *targets = (torch.stack(parts) for parts in zip(*batches, strict=True))
        given = {}
        for name in self._maps:
            own = {key.removeprefix(f"{name}."): t for key, t in tensors.items() if key.startswith(f"{name}.")}
            given[f"{name}.W"] = self._matrices(name, [model.get_submodule(name) for model in models], own)
        rest = {key: t for key, t in tensors.items() if not key.startswith(tuple(f"{name}." for name in self._maps))}

        def output(tensors: NamedTensors, x: Tensor) -> Tensor:
            return functional_call(self._template, tensors, (x,))[0]

        return vmap(output)(rest | given, x), targets

    def _matrices(self, name: str, maps: list[nn.Module], tensors: NamedTensors) -> Tensor:
        """The members' matrices of one parametrization, (S, N, N)."""
        if self._maps[name]:
            try:
                return vmap(lambda own: functional_call(maps[0], own, ()))(tensors)
            except torch.OutOfMemoryError:
                raise
            except RuntimeError:
                self._maps[name] = False
        rows = [{key: t[i] for key, t in tensors.items()} for i in range(len(maps))]
        return torch.stack([functional_call(one, row, ()) for one, row in zip(maps, rows, strict=True)])


class _Penalty(nn.Module):
    """The penalty of a parametrization, as a module's forward."""

    def __init__(self, parametrization: nn.Module) -> None:
        super().__init__()
        self.map: Any = parametrization

    def forward(self) -> Tensor | None:
        return self.map.penalty()


class _Given(nn.Module):
    """Replaces a parametrization whose matrix W has been computed already."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("W", torch.empty(0))

    def forward(self) -> Tensor:
        return self.get_buffer("W")


def stacked(models: list[Any], named: Callable[[nn.Module], Any]) -> NamedTensors:
    """Parameters or buffers of all members by name, (S, ...)."""
    members = [dict(named(model)) for model in models]
    return {name: torch.stack([member[name].detach() for member in members]) for name in members[0]}


def _train_one(request: Request) -> Trained:
    learner, (x, target, *mask) = request
    loss, penalty = learner.task.loss(learner.model(x)[0], target, *mask), learner.model.penalty()
    loss = loss if penalty is None else loss + penalty
    parameters = list(learner.model.parameters())
    gradients = torch.autograd.grad(loss / learner.duration.accumulate, parameters, allow_unused=True)
    return loss.detach(), list(gradients)


def _measure_one(request: Request) -> dict[str, Tensor]:
    learner, (x, target, *mask) = request
    return learner.task.measure(learner.model(x)[0], target, *mask)
