"""The fused loop, captured in CUDA graphs: for any cell and size, one launch forward and one backward.

A program is a function of tensors whose forward and reverse were each captured once, over buffers of its own; to run it
is to copy its arguments in, replay, and copy out. From its forward until its reverse is done, a program is on lease, so
that two forwards before a reverse never share buffers. A shape is captured when it comes for the second time, and the
least recently used of a cell's shapes are dropped, so that a task whose length varies neither waits nor fills a GPU.
"""

from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from orthobench.cells.base import Cell, Matrices, State
from orthobench.scan import fused, reference
from orthobench.scan.families import lookup
from orthobench.terminal import complain

SHAPES = 8  # of each cell, kept captured
Function = Callable[..., tuple[Tensor, ...]]


def supports(cell: Cell) -> bool:
    """Whether this engine can run the cell where it is."""
    return why_not(cell) is None


def why_not(cell: Cell) -> str | None:
    """Why this engine cannot run the cell; null when it can."""
    return None if cell.U.is_cuda else "it is for CUDA devices"


def run(cell: Cell, x: Tensor, state: State) -> tuple[Tensor, State]:
    """Run `cell` over x from `state`; see `reference.run`."""
    W = cell.matrices()
    given = {id(p) for p in (cell.U, cell.h0, *cell.recurrent.parameters())}
    own = {name: p for name, p in cell.named_parameters() if id(p) not in given}
    arguments = (cell.project(x).to(W[0].dtype), *state, *W, *own.values())
    loop = _Loop(cell, lookup(cell, fused.FAMILIES) or reference.run)
    names, ends = [f"cell.{name}" for name in own], (1 + len(state), 1 + len(state) + len(W))

    def function(*given: Tensor) -> tuple[Tensor, ...]:
        parameters = dict(zip(names, given[ends[1] :], strict=True))
        with torch.autocast(given[0].device.type, enabled=False):
            inputs = given[0], given[1 : ends[0]], given[ends[0] : ends[1]]
            return torch.func.functional_call(loop, parameters, inputs)

    lease = SHELVES.setdefault(cell, Shelf()).lease(function, arguments)
    if lease is None:
        return (fused if fused.supports(cell) else reference).run(cell, x, state)
    h_BTN, *final = Replay.apply(lease, *arguments)
    return h_BTN, tuple(final)


class _Loop(nn.Module):
    """An engine's loop over a cell as a function of projections, state, matrices and the cell's other parameters."""

    def __init__(self, cell: Cell, run: fused.Run) -> None:
        super().__init__()
        self.cell, self.run = cell, run

    def forward(self, p_TBM: Tensor, state: State, W: Matrices) -> tuple[Tensor, ...]:
        h_BTN, final = self.run(_Given(self.cell, p_TBM, W), p_TBM, state)  # type: ignore[arg-type]
        return h_BTN, *final


class _Given:
    """A cell whose projection and matrices are there already."""

    def __init__(self, cell: Cell, p_TBM: Tensor, W: Matrices) -> None:
        self._cell, self._p_TBM, self._W = cell, p_TBM, W

    def project(self, x: Tensor) -> Tensor:
        return self._p_TBM

    def matrices(self) -> Matrices:
        return self._W

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cell, name)


class Graph:
    """One torch.cuda.CUDAGraph."""

    def __init__(self) -> None:
        self._graph = torch.cuda.CUDAGraph()

    @staticmethod
    def warm_up(work: Callable[[], object]) -> None:
        """Run what will be captured once as it is, on a stream of its own, so that libraries are set up."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            work()
        torch.cuda.current_stream().wait_stream(stream)

    def capture(self, work: Callable[[], Any], after: "Graph | None" = None) -> Any:
        """What `work` returns, in buffers that `replay` fills; `after` is a graph whose buffers `work` reads."""
        here = torch.cuda.stream(torch.cuda.current_stream())  # a capture that fails does not come back by itself
        pool = None if after is None else after._graph.pool()
        graph = torch.cuda.graph(self._graph, pool=pool, capture_error_mode="thread_local")  # a loader may pin batches
        with here, graph:
            return work()

    def replay(self) -> None:
        """Do the work again."""
        self._graph.replay()


class Program:
    """A function's forward, and its reverse where an argument needs a gradient, as graphs over buffers of their own."""

    def __init__(self, function: Function, arguments: tuple[Tensor, ...], needed: tuple[bool, ...]) -> None:
        self._inputs = tuple(torch.empty(a.shape, dtype=a.dtype, device=a.device) for a in arguments)
        self._copy_in(self._inputs, arguments)
        leaves = [i.requires_grad_() for i, need in zip(self._inputs, needed, strict=True) if need]
        self._gradients: tuple[Tensor, ...] = ()
        live: list[Tensor] = []

        def forward() -> tuple[Tensor, ...]:
            with torch.set_grad_enabled(bool(leaves)):
                live[:] = function(*self._inputs)
            return tuple(y.detach() for y in live)

        def reverse() -> tuple[Tensor | None, ...]:
            found = iter(torch.autograd.grad(live, leaves, self._gradients, allow_unused=True))
            return tuple(next(found) if need else None for need in needed)

        def both() -> None:
            self._gradients = tuple(torch.zeros_like(y) for y in forward())
            if leaves:
                reverse()

        Graph.warm_up(both)
        self._forward, self._reverse = Graph(), Graph()
        self._outputs = self._forward.capture(forward)
        if leaves:
            self._found = self._reverse.capture(reverse, after=self._forward)

    @staticmethod
    @torch.no_grad()
    def _copy_in(buffers: tuple[Tensor, ...], values: tuple[Tensor, ...]) -> None:
        for buffer, value in zip(buffers, values, strict=True):
            buffer.copy_(value)

    def forward(self, arguments: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """The function's outputs."""
        self._copy_in(self._inputs, arguments)
        self._forward.replay()
        return tuple(y.clone() for y in self._outputs)

    def reverse(self, gradients: tuple[Tensor, ...]) -> tuple[Tensor | None, ...]:
        """Gradients of the arguments of the latest `forward`."""
        self._copy_in(self._gradients, gradients)
        self._reverse.replay()
        return tuple(None if g is None else g.clone() for g in self._found)


class Lease:
    """A program in use; it goes back to its shelf when it is released or forgotten."""

    def __init__(self, program: Program, shelf: list[Program]) -> None:
        self.program: Program | None = program
        self._shelf = shelf

    def release(self) -> None:
        """Let others use the program."""
        if self.program is not None:
            self._shelf.append(self.program)
            self.program = None

    __del__ = release


class Shelf:
    """The programs of one cell that are not in use, by what they were captured for."""

    def __init__(self) -> None:
        self._seen: OrderedDict[Any, list[Program] | None] = OrderedDict()

    def lease(self, function: Function, arguments: tuple[Tensor, ...]) -> Lease | None:
        """A program of `function`; null for a shape that is new, or that could not be captured."""
        needed = tuple(a.requires_grad and torch.is_grad_enabled() for a in arguments)
        kinds = tuple((a.shape, a.dtype, a.device) for a in arguments)
        key = (kinds, needed, torch.is_inference_mode_enabled())
        new = key not in self._seen
        free = self._seen.setdefault(key, [])
        self._seen.move_to_end(key)
        while len(self._seen) > SHAPES:
            self._seen.popitem(last=False)
        if new or free is None:
            return None
        try:
            program = free.pop() if free else Program(function, arguments, needed)
        except RuntimeError as error:
            _warn(str(error).split("\n")[0])
            self._seen[key] = None
            return None
        return Lease(program, free)


SHELVES: WeakKeyDictionary[Cell, Shelf] = WeakKeyDictionary()


@lru_cache
def _warn(problem: str) -> None:
    complain(f"orthobench: engine=graph could not capture a cell, which runs step by step instead: {problem}.")


class Replay(torch.autograd.Function):
    """(lease, arguments) -> outputs, by replaying the lease's program."""

    @staticmethod
    def forward(ctx: Any, lease: Lease, *arguments: Tensor) -> tuple[Tensor, ...]:
        assert lease.program is not None
        outputs = lease.program.forward(arguments)
        if any(ctx.needs_input_grad):
            ctx.lease = lease
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        if ctx.lease.program is None:
            raise RuntimeError("engine=graph keeps what a reverse needs for one reverse only; use engine=fused.")
        found = ctx.lease.program.reverse(gradients)
        ctx.lease.release()
        return None, *found
