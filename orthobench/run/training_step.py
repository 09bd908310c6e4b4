"""The loss of a batch, and the state after it: step by step or, on a GPU, replayed as a whole."""

from functools import cached_property
from itertools import islice

from torch import Tensor

from orthobench.cells.base import State
from orthobench.models.base import Network
from orthobench.models.segments import with_matrices
from orthobench.scan.graph.capture import Replay, Shelf
from orthobench.tasks.base import Batch, Task

Counted = tuple[Tensor, ...]  # a batch, and behind it the steps whose outputs are computed, where not all are
SPARED = 2  # how many times as many steps there must be
CAPTURED = {"graph", "cuda"}  # engines whose work may be part of a graph
SHAPES = 2  # kept captured: more than that is a task whose length varies, and left to the cells' own graphs


class TrainingStep:
    """From a batch and the state before it to the loss and the state after it.

    Where the engines of all layers are among CAPTURED, projections, loops, readout and loss are one CUDA graph, and
    their reverse another, for the shapes that come again. The recurrent matrices and their penalties stay outside,
    because solvers and factorizations cannot be captured everywhere; so do the optimizer, clipping and what follows a
    step.

    Attributes:
        replays: whether it may be replayed; not where hooks of modules are to be called.
    """

    def __init__(self, model: Network, task: Task) -> None:
        self.model, self.task = model, task
        self._shelf = Shelf("a training step", SHAPES, "its cells are captured one by one")
        self._sizes: list[int] = []
        self.replays = True

    def __call__(self, batch: Batch, carried: list[State] | None) -> tuple[Tensor, list[State]]:
        batch = counted(self.model, self.task, batch)
        if not (self.replays and self._is_captured):
            return self._plain(batch, carried)
        matrices = [cell.matrices() for cell in self.model.cells]
        states = tuple(s for layer in carried or () for s in layer)
        arguments = (*batch, *states, *(W for layer in matrices for W in layer))
        counts, ends = [len(layer) for layer in matrices], (len(batch), len(batch) + len(states))
        parameters = tuple(p for p in self.model.parameters() if p.requires_grad)

        def function(*given: Tensor) -> tuple[Tensor, ...]:
            before = self._layers(given[ends[0] : ends[1]]) if carried is not None else None
            with with_matrices(self.model.cells, _parts(given[ends[1] :], counts)):
                loss, state = self._loss(given[: ends[0]], before)
            return loss, *(s.detach() for layer in state for s in layer)

        lease = self._shelf.lease(function, arguments, parameters)
        if lease is None:
            with with_matrices(self.model.cells, matrices):
                return self._plain(batch, carried)
        loss, *state = Replay.apply(lease, len(arguments), *arguments, *parameters)
        return self._with_penalty(loss), self._layers(tuple(state))

    def _plain(self, batch: tuple[Tensor, ...], carried: list[State] | None) -> tuple[Tensor, list[State]]:
        loss, state = self._loss(batch, carried)
        return self._with_penalty(loss), state

    def _loss(self, batch: tuple[Tensor, ...], carried: list[State] | None) -> tuple[Tensor, list[State]]:
        y, state = answered(self.model, batch[0], carried, *batch[3:])
        self._sizes = [len(layer) for layer in state]
        return self.task.loss(y, *batch[1:3]), state

    def _with_penalty(self, loss: Tensor) -> Tensor:
        penalty = self.model.penalty()
        return loss if penalty is None else loss + penalty

    def _layers(self, tensors: tuple[Tensor, ...]) -> list[State]:
        """The states of all layers, of which `tensors` are the parts."""
        return _parts(tensors, self._sizes)

    @cached_property
    def _is_captured(self) -> bool:
        """Return True if every layer is run by a captured engine; looked up once, on the model's final device."""
        engines = {name for name, _ in self.model.engines()}
        return self.model.checkpoint is None and bool(engines) and engines <= CAPTURED


def counted(model: Network, task: Task, batch: Batch) -> Counted:
    """A batch with targets and masks (B, K) of the steps that count, and these steps; itself where most may count."""
    most = task.counted
    if most is None or not model.reads_steps or len(batch) < 3 or batch[2].shape[1] < SPARED * most:
        return batch
    x, target, mask = batch
    steps = mask.topk(most, dim=1).indices.sort(dim=1).values
    return x, target.gather(1, steps), mask.gather(1, steps), steps


def answered(
    model: Network, x: Tensor, state: list[State] | None, steps: Tensor | None = None
) -> tuple[Tensor, list[State]]:
    """Outputs for x, of the steps that count where these are given, and the state behind it."""
    return model(x, state) if steps is None else model(x, state, steps=steps)


def _parts(tensors: tuple[Tensor, ...], sizes: list[int]) -> list[tuple[Tensor, ...]]:
    rest = iter(tensors)
    return [tuple(islice(rest, size)) for size in sizes]
