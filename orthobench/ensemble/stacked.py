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
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from orthobench.common.terminal import say
from orthobench.ensemble.feed import Feed, joined
from orthobench.ensemble.packed import NamedTensors, Packed
from orthobench.errors import is_exhaustion
from orthobench.models.base import Network
from orthobench.parametrizations.accumulated import accumulated
from orthobench.parametrizations.base import Parametrization, parametrizations
from orthobench.parametrizations.free import Free
from orthobench.parametrizations.hooks import heard
from orthobench.run.learner import Learner
from orthobench.run.training_step import CAPTURED, SHAPES
from orthobench.scan import choose
from orthobench.scan.graph.capture import Replay, Shelf
from orthobench.tasks.base import Batch

Request = tuple[Learner, Batch]
Trained = tuple[Tensor, list[Tensor | None]]
Found = Callable[..., tuple[Tensor, ...]]  # of outputs, targets and mask
INSTEAD = "its cells are captured one by one"
KINDS = ("a training step", "an evaluation")
STACKED = ("stacked", "stacked, engine=reference", "apart")


def forms(device: torch.device) -> tuple[str, ...]:
    """The ways to compute, best first; a CPU does not stack, which would gain nothing and change the last bits."""
    return STACKED if device.type == "cuda" else STACKED[-1:]


class Stacked:
    """The computations that members of one shape share.

    Attributes:
        forms: the ways to compute that have not failed; the first of them is used.
        at_most: how many members fit into memory at once, as far as is known.
        feed: what draws their batches, once anything needs it.
        captures_maps: whether a step is captured on `cuda` where matrices are computed. That failed on an H200, where
            the graph met leaves of another stream; `orthobench bench --gpu` tries it again.

    Args:
        model: the model of any member.
        forms: the ways to compute, see the function `forms`.
    """

    captures_maps: ClassVar[bool] = False

    def __init__(self, model: Network, forms: tuple[str, ...]) -> None:
        self.forms, self.at_most = list(forms), 1 << 30
        self._trained = 0
        self._template = copy.deepcopy(model)
        self._engine: Any = getattr(model, "engine", "auto")
        self._packs: dict[int, Packed] = {}
        self._used: frozenset[str] | None = None
        self._engines: dict[int, bool] = {}
        self._steps, self._measures = (Shelf(f"{what} of all members", SHAPES, INSTEAD) for what in KINDS)
        self._names: list[str] = []
        self._seen: list[Any] = []
        self.feed: Feed | None = None
        inside = [name for name, module in model.named_modules() if is_computed(module)]
        outermost = [name for name in inside if not name.startswith(tuple(f"{other}." for other in inside))]
        self._maps = {name: not scales_gradient(model.get_submodule(name)) for name in outermost}
        for name in self._maps:
            parent, _, own = name.rpartition(".")
            self._template.get_submodule(parent).register_module(own, _Given())
        self._inside = tuple(f"{name}." for name in self._maps)

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
            except (RuntimeError, ValueError) as error:
                if not is_exhaustion(error):  # the next form shows whether the run itself causes the error
                    reason = str(error).split("\n")[0]
                    say(f"members cannot be computed {self.forms.pop(0)} ({reason}); {self.forms[0]} instead")
                elif len(chunk) == 1:
                    raise
                else:
                    self.at_most = len(chunk) // 2
                    say(f"{len(chunk)} members at once do not fit in memory; {self.at_most} at once from here on")
        return found

    def _train(self, requests: list[Request]) -> list[Trained]:
        learners, batch = [one for one, _ in requests], joined([batch for _, batch in requests])
        model, accumulate = learners[0].model, learners[0].duration.accumulate
        if accumulate > 1 and accumulated(model):
            raise RuntimeError("gradients of matrices are clipped or scaled over several batches")
        packed = self.packed(learners)
        if self._used is None:
            losses, rows = self._first(learners, packed, batch)
        else:
            losses, gradients = self.gradients(learners, packed, batch)
            pairs = zip(packed.packs, gradients, strict=True)
            rows = {name: own for pack, g in pairs for name, own in pack.gradients(g).items()}
        self._trained, names = len(requests), [name for name, _ in model.named_parameters()]
        of_each = [[rows[name][i] if name in rows else None for name in names] for i in range(len(requests))]
        return list(zip(losses.unbind(), of_each, strict=True))

    def _first(self, learners: list[Learner], packed: Packed, batch: Batch) -> tuple[Tensor, dict[str, Any]]:
        """Losses, and gradients by name and member; it notes which parameters have a gradient."""
        named, task = packed.named(), learners[0].task
        (losses,) = self._mapped(learners, named, batch, lambda *given: (task.loss(*given),))
        losses = losses + self._penalties(learners[0].model, named)
        leaves = {name: named[name] for pack in packed.packs for name in pack.names}
        total = (losses / learners[0].duration.accumulate).sum()
        found = torch.autograd.grad(total, list(leaves.values()), allow_unused=True)
        rows = {name: g.unbind() for name, g in zip(leaves, found, strict=True) if g is not None}
        self._used, self._seen = frozenset(rows), _shapes(batch)
        self._packs.clear()
        return losses.detach(), rows

    def whole(self, members: int) -> bool:
        """Return True if so many members have been computed stacked, and all at once."""
        return 1 < members <= min(self.at_most, self._trained) and self.forms[0] != "apart"

    def packed(self, learners: list[Learner]) -> Packed:
        """All members' parameters and buffers as they are now, in memory that stays where it is."""
        models = [learner.model for learner in learners]
        found = self._packs.get(len(models))
        if found is None or not found.fits(models):
            settings = learners[0].optimizer.settings()
            kinds = {n: settings.get(id(p)) for n, p in models[0].named_parameters() if p.requires_grad}
            used = kinds if self._used is None else {n: kind for n, kind in kinds.items() if n in self._used}
            found = self._packs[len(models)] = Packed(models, used)
        return found.load(models)

    def gradients(self, learners: list[Learner], packed: Packed, batch: Batch) -> tuple[Tensor, list[Tensor]]:
        """The losses (S,) of a batch (S, B, ...), and the gradient (S, M) of every pack."""
        task, accumulate = learners[0].task, learners[0].duration.accumulate
        (losses,) = self._replayed(self._steps, learners, packed, batch, lambda *given: (task.loss(*given),))
        losses = losses + self._penalties(learners[0].model, packed.named() if self._maps else {})
        return losses.detach(), list(torch.autograd.grad((losses / accumulate).sum(), packed.values))

    def _penalties(self, model: nn.Module, leaves: NamedTensors) -> Tensor | float:
        """Terms that are added to every member's loss, (S,)."""
        total: Tensor | float = 0.0
        for name in self._maps:
            penalty = _Penalty(model.get_submodule(name))
            if penalty() is not None:
                own = {f"map.{key}": leaves[f"{name}.{key}"] for key, _ in model.get_submodule(name).named_parameters()}
                total = total + vmap(partial(functional_call, penalty, args=()))(own)
        return total

    def _measure(self, requests: list[Request]) -> list[dict[str, Tensor]]:
        learners, names = [one for one, _ in requests], list[str]()

        def measured(*given: Tensor) -> tuple[Tensor, ...]:
            values = learners[0].task.measure(*given)
            names[:] = values
            return tuple(values.values())

        batch = joined([batch for _, batch in requests])
        values = self._replayed(self._measures, learners, self.packed(learners), batch, measured)
        self._names = names or self._names  # a replay calls no Python
        return [{n: value[i] for n, value in zip(self._names, values, strict=True)} for i in range(len(requests))]

    def _replayed(
        self, shelf: Shelf, learners: list[Learner], packed: Packed, batch: Batch, found: Found
    ) -> tuple[Tensor, ...]:
        """See `_mapped`; as one CUDA graph each way, for shapes that come again, all but the matrices."""
        named = packed.named() if self._maps else {}
        given = self._given(learners, named)
        if not self._is_captured(learners[0].model, len(batch[0][0])):
            return self._computed(named or packed.named(), given, batch, found)
        arguments, count = (*batch, *given.values()), len(batch)

        def function(*tensors: Tensor) -> tuple[Tensor, ...]:
            matrices = dict(zip(given, tensors[count:], strict=True))
            return self._computed(packed.named(captured=True), matrices, tensors[:count], found)

        again = shelf is self._steps and _shapes(batch) == self._seen
        lease = shelf.lease(function, arguments, tuple(pack.captured for pack in packed.packs), again)
        if lease is None:
            return self._computed(named or packed.named(), given, batch, found)
        return Replay.apply(lease, len(arguments), *arguments, *packed.values)

    def _mapped(self, learners: list[Learner], named: NamedTensors, batch: Batch, found: Found) -> tuple[Tensor, ...]:
        """Values of `found` for the outputs (B, ...), targets and mask of every member, (S, ...)."""
        return self._computed(named, self._given(learners, named), batch, found)

    def _computed(self, named: NamedTensors, given: NamedTensors, batch: Batch, found: Found) -> tuple[Tensor, ...]:
        x, *targets = batch
        rest = {key: t for key, t in named.items() if not key.startswith(self._inside)} | given

        def output(tensors: NamedTensors, x: Tensor) -> Tensor:
            return functional_call(self._template, tensors, (x,))[0]

        return vmap(found)(vmap(output)(rest, x), *targets)

    def _is_captured(self, model: Network, batch_size: int) -> bool:
        """Return True if the engines that will run may be part of a graph."""
        if self.forms[0] != "stacked":
            return False
        if batch_size not in self._engines:
            names = {choose(cell, model.engine, sequences=batch_size)[0] for cell in model.cells}
            tried = self.captures_maps or not self._maps or "cuda" not in names
            self._engines[batch_size] = bool(names) and names <= CAPTURED and tried
        return self._engines[batch_size]

    def _given(self, learners: list[Learner], named: NamedTensors) -> NamedTensors:
        """The members' matrices, (S, N, N), by the name that the template has for them."""
        found = {}
        for name in self._maps:
            own = {key.removeprefix(f"{name}."): t for key, t in named.items() if key.startswith(f"{name}.")}
            found[f"{name}.W"] = self._matrices(name, [one.model.get_submodule(name) for one in learners], own)
        return found

    def _matrices(self, name: str, maps: list[nn.Module], tensors: NamedTensors) -> Tensor:
        """The members' matrices of one parametrization, (S, N, N)."""
        asked = any(heard(found) for one in maps for found in one.modules())  # the first member's alone below
        if self._maps[name] and not asked:
            try:
                return vmap(lambda own: functional_call(maps[0], own, ()))(tensors)
            except RuntimeError as error:
                if is_exhaustion(error):
                    raise
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


def is_computed(module: nn.Module) -> bool:
    """Return True if a module computes a matrix, and does not only hold it."""
    return isinstance(module, Parametrization) and type(module) is not Free


def scales_gradient(module: nn.Module) -> bool:
    """Return True if a parametrization in a module changes the gradient of its matrix by a hook."""
    return any(found.scales_gradient for found in parametrizations(module))


def _shapes(batch: Batch) -> list[Any]:
    return [(t.shape, t.dtype) for t in batch]


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
