"""The loss of a batch, and the state after it: step by step or, with engine=graph, replayed as a whole."""

from functools import cached_property
from itertools import islice

from torch import Tensor

from orthobench.cells.base import State
from orthobench.models.base import Network
from orthobench.scan.graph.capture import Replay, Shelf
from orthobench.tasks.base import Batch, Task

SHAPES = 2  # kept captured: more than that is a task whose length varies, and left to the cells' own graphs


class TrainingStep:
    """From a batch and the state before it to the loss and the state after it.

    Where engine=graph runs every layer, all of it (matrices, projections, loops, readout, loss) and its reverse are one
    CUDA graph each for the shapes that come again. The optimizer, clipping and what follows a step stay outside.

    Attributes:
        replays: whether it may be replayed; not where hooks of modules are to be called.
    """

    def __init__(self, model: Network, task: Task) -> None:
        self.model, self.task = model, task
        self._shelf = Shelf("a training step", SHAPES)
        self._sizes: list[int] = []
        self.replays = True

    def __call__(self, batch: Batch, carried: list[State] | None) -> tuple[Tensor, list[State]]:
        if not (self.replays and self._is_captured):
            return self._plain(batch, carried)
        arguments = (*batch, *(s for layer in carried or () for s in layer))
        parameters = tuple(p for p in self.model.parameters() if p.requires_grad)

        def function(*given: Tensor) -> tuple[Tensor, ...]:
            before = self._layers(given[len(batch) :]) if carried is not None else None
            loss, state = self._plain(given[: len(batch)], before)
            return loss, *(s.detach() for layer in state for s in layer)

        lease = self._shelf.lease(function, arguments, parameters)
        if lease is None:
            return self._plain(batch, carried)
        loss, *state = Replay.apply(lease, len(arguments), *arguments, *parameters)
        return loss, self._layers(tuple(state))

    def _plain(self, batch: tuple[Tensor, ...], carried: list[State] | None) -> tuple[Tensor, list[State]]:
        x, target, *mask = batch
        y, state = self.model(x, carried)
        self._sizes = [len(layer) for layer in state]
        loss, penalty = self.task.loss(y, target, *mask), self.model.penalty()
        return loss if penalty is None else loss + penalty, state

    def _layers(self, tensors: tuple[Tensor, ...]) -> list[State]:
        """The states of all layers, of which `tensors` are the parts."""
        parts = iter(tensors)
        return [tuple(islice(parts, size)) for size in self._sizes]

    @cached_property
    def _is_captured(self) -> bool:
        """Looked at when training begins, where the model will stay."""
        engines = {name for name, _ in self.model.engines()}
        return engines == {"graph"}
