"""Engines under torch.func.vmap, where every tensor has an additional axis of members.

The plain loop is mapped directly, and Triton's kernels have a grid over members (see `Engine.mapped`). Any other engine
runs one member after the other with the same kernel as without vmap, which on a CPU gives the same bits.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from orthobench.cells.base import Cell, State
from orthobench.parametrizations.hooks import refresh
from orthobench.parametrizations.traced import transforms
from orthobench.scan import reference
from orthobench.scan.engines import Engine
from orthobench.scan.steps import at_steps

core: Any = torch._C  # it has no type stubs


def run(engine: Engine, cell: Cell, x: Tensor, state: State, steps: Tensor | None = None) -> tuple[Tensor, State]:
    """Run `cell` over x from `state`, with or without members; see `Engine.run`."""
    if engine.mapped or not transforms():
        return engine.run(cell, x, state, steps)
    scanned = _Scan(cell, engine)
    own = dict([*scanned.named_parameters(), *scanned.named_buffers()])
    if not any(map(core._functorch.is_batchedtensor, (x, *own.values(), *state))):
        h, end = reference.run(cell, x, state)
        return at_steps(h, steps), end
    start, wanted = len(own) + len(state), () if steps is None else (steps,)

    def one(x: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
        given = x, tensors[len(own) : start], *tensors[start:]
        h, final = functional_call(scanned, dict(zip(own, tensors, strict=False)), given)
        return h, *final

    h, *final = _OneByOne.apply(one, x, *own.values(), *state, *wanted)
    return h, tuple(final)


class _Scan(nn.Module):
    """A scan as a module's forward, whose parameters are the cell's."""

    def __init__(self, cell: Cell, engine: Engine) -> None:
        super().__init__()
        self.cell, self.engine = cell, engine

    def forward(self, x: Tensor, state: State, steps: Tensor | None = None) -> tuple[Tensor, State]:
        refresh(self.cell)
        return run(self.engine, self.cell, x, state, steps)


class _OneByOne(torch.autograd.Function):
    """(function, *tensors) -> function(*tensors); gradients flow through the graph that `function` itself records."""

    @staticmethod
    def forward(function: Callable[..., tuple[Tensor, ...]], *tensors: Tensor) -> tuple[Tensor, ...]:
        return function(*tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        """Saves nothing; torch.func requires the method."""

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], function: Any, *tensors: Tensor) -> tuple[Any, Any]:
        """See `torch.autograd.Function.vmap`."""
        members = [
            function(
                *(t if d is None else t.select(d, i).contiguous() for t, d in zip(tensors, in_dims[1:], strict=True))
            )
            for i in range(info.batch_size)
        ]
        return tuple(map(torch.stack, zip(*members, strict=True))), 0
