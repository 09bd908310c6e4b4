"""A function of tensors as CUDA graphs: captured once forward and once backward, then replayed.

A program has its own buffers: running it means copying its arguments in, replaying, and copying the results out.
Parameters are not arguments; they are read in place. A program is on lease from its forward pass until its backward
pass is done, so that two forward passes before a backward pass never share buffers. A shape is captured when it occurs
for the second time, and the least recently used shapes are dropped, so that a task whose length varies does not spend
its time on captures or fill the GPU's memory.

A replay repeats the GPU's work but not Python's: any state that a function keeps must be tensors, changed in place.
"""

import contextlib
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, ClassVar

import torch
from torch import Tensor

from orthobench.common.terminal import complain
from orthobench.parametrizations.derivatives import first_only
from orthobench.parametrizations.traced import capturing

TensorTuple = tuple[Tensor, ...]
Function = Callable[..., TensorTuple]


def under_way() -> bool:
    """Return True if a function is being captured now."""
    return capturing.get()


@contextlib.contextmanager
def _capturing() -> Iterator[None]:
    """Turn autocast's cache off: a graph would otherwise go on reading casts of outdated weights."""
    token, cached = capturing.set(True), torch.is_autocast_cache_enabled()
    torch.set_autocast_cache_enabled(False)
    try:
        yield
    finally:
        torch.set_autocast_cache_enabled(cached)
        capturing.reset(token)


class CaptureError(RuntimeError):
    """A capture that had begun and failed."""


@lru_cache
def _stream(device: int) -> Any:
    """The one stream of a device on which work is warmed up and captured.

    Solvers keep memory for each stream that they have run on, and a capture on another one is invalid.
    """
    return torch.cuda.Stream(device)


class Graph:
    """Captured torch.cuda.CUDAGraph."""

    def __init__(self) -> None:
        self._graph = torch.cuda.CUDAGraph()

    @staticmethod
    def warm_up(work: Callable[[], object]) -> None:
        """Run the work once without capturing it, on the stream of captures, so that libraries are initialised.

        What it draws is drawn again by the first replay: a run that is resumed captures once more.

        Raises:
            RuntimeError: the work waits for the GPU, which would make a capture fail.
        """
        device = torch.cuda.current_device()
        stream = _stream(device)
        stream.wait_stream(torch.cuda.current_stream())
        drawn = torch.random.fork_rng([device], device_type="cuda")
        with drawn, torch.cuda.stream(stream), _waiting_refused():
            work()
        torch.cuda.current_stream().wait_stream(stream)
        _forget_workspaces()

    def capture(self, work: Callable[[], Any], after: "Graph | None" = None) -> Any:
        """Capture `work`, which may read the buffers of `after`; returns its result, in buffers that `replay` fills."""
        here = torch.cuda.stream(torch.cuda.current_stream())  # a failed capture does not restore the stream
        pool = torch.cuda.graph_pool_handle() if after is None else after._graph.pool()
        device, mode = torch.cuda.current_device(), "thread_local"  # a loader may pin batches
        graph = torch.cuda.graph(self._graph, pool, _stream(device), capture_error_mode=mode)
        try:
            with here, graph:
                found = work()
        except RuntimeError:
            _leave(device, pool)
            raise
        _forget_workspaces()
        return found

    def replay(self) -> None:
        """Repeat the captured work."""
        self._graph.replay()


def _leave(device: int, pool: Any) -> None:
    """Tell the allocator that a failed capture is over, or it keeps all memory that another stream has used."""
    with contextlib.suppress(RuntimeError):  # it is over, where torch has come as far
        torch._C._cuda_endAllocateToPool(device, pool)
        torch._C._cuda_releasePool(device, pool)


@contextlib.contextmanager
def _waiting_refused() -> Iterator[None]:
    before = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch says that this mode is a prototype
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode(before)


def _forget_workspaces() -> None:
    """Make cuBLAS allocate new workspaces: those of a capture belong to its graph and are freed with it."""
    torch._C._cuda_clearCublasWorkspaces()


class Program:
    """A function's forward pass, and its backward pass where anything needs a gradient, as graphs with own buffers.

    Args:
        function: takes tensors and returns tensors.
        arguments: the arguments of the first call.
        needed: for each argument, whether it needs a gradient.
        parameters: the other tensors that need a gradient.
    """

    def __init__(
        self, function: Function, arguments: TensorTuple, needed: tuple[bool, ...], parameters: TensorTuple
    ) -> None:
        self._inputs = tuple(torch.empty(a.shape, dtype=a.dtype, device=a.device) for a in arguments)
        self._copy_in(self._inputs, arguments)
        leaves = [i.requires_grad_() for i, need in zip(self._inputs, needed, strict=True) if need]
        leaves += parameters if torch.is_grad_enabled() else ()
        self._gradients: TensorTuple = ()
        self.differentiable: tuple[bool, ...] = ()
        live: list[Tensor] = []
        device = arguments[0].device.type

        def forward() -> TensorTuple:
            with torch.set_grad_enabled(bool(leaves)):
                outputs = function(*self._inputs)
            self.differentiable = tuple(y.requires_grad for y in outputs)
            live[:] = [y for y in outputs if y.requires_grad]
            return tuple(y.detach() for y in outputs)

        def reverse() -> tuple[Tensor | None, ...]:
            with torch.autocast(device, enabled=False):  # a backward pass runs without autocast outside a capture, too
                found = iter(torch.autograd.grad(live, leaves, self._gradients, allow_unused=True))
            return (*(next(found) if need else None for need in needed), *found)

        def both() -> None:
            forward()
            self._gradients = tuple(torch.zeros_like(y) for y in live)
            if live:
                reverse()
            live.clear()  # autograd's records there belong to another stream

        with _capturing():
            Graph.warm_up(both)
            self._forward, self._reverse = Graph(), Graph()
            try:
                self._outputs = self._forward.capture(forward)
                if live:
                    self._found = self._reverse.capture(reverse, after=self._forward)
            except RuntimeError as error:
                raise CaptureError(*error.args) from error

    @staticmethod
    @torch.no_grad()
    def _copy_in(buffers: TensorTuple, values: TensorTuple) -> None:
        for buffer, value in zip(buffers, values, strict=True):
            buffer.copy_(value)

    def forward(self, arguments: TensorTuple) -> TensorTuple:
        """Replay the forward pass; returns the function's outputs."""
        self._copy_in(self._inputs, arguments)
        self._forward.replay()
        return tuple(y.clone() for y in self._outputs)

    def reverse(self, gradients: TensorTuple) -> tuple[Tensor | None, ...]:
        """Gradients of the arguments of the latest `forward`, then of the parameters.

        Args:
            gradients: one for every output.
        """
        self._copy_in(self._gradients, tuple(g for g, d in zip(gradients, self.differentiable, strict=True) if d))
        self._reverse.replay()
        return tuple(None if g is None else g.clone() for g in self._found)


class Lease:
    """A program in use; it goes back to its shelf when it is released or forgotten."""

    def __init__(self, program: Program, shelf: list[Program]) -> None:
        self.program: Program | None = program
        self._shelf = shelf

    def release(self) -> None:
        """Return the program to its shelf, so that others can use it."""
        if self.program is not None:
            self._shelf.append(self.program)
            self.program = None

    __del__ = release


class Shelf:
    """The programs of one function that are not in use, by the shapes that they were captured for.

    Args:
        what: the function's name in messages.
        most: the largest number of shapes that are kept captured.
        instead: what is done where a capture fails half-way, in messages; None for nothing, after which this process
            tries no other capture, because torch does not promise that one works then.
    """

    closed: ClassVar[bool] = False

    def __init__(self, what: str, most: int, instead: str | None = None) -> None:
        self._what, self._most, self._instead = what, most, instead
        self._failed = False
        self._seen: OrderedDict[Any, list[Program] | None] = OrderedDict()
        self._dropped = 0

    def lease(
        self, function: Function, arguments: TensorTuple, parameters: TensorTuple = (), again: bool = False
    ) -> Lease | None:
        """A program of `function`; None for a shape that is new, or that could not be captured.

        Args:
            function: takes tensors and returns tensors.
            arguments: its arguments.
            parameters: the other tensors that need a gradient.
            again: whether the shape occurred before, elsewhere.
        """
        needed = tuple(a.requires_grad and torch.is_grad_enabled() for a in arguments)
        kinds = tuple((a.shape, a.dtype, a.device) for a in arguments)
        places = tuple(p.data_ptr() for p in parameters)
        key = (kinds, needed, torch.is_inference_mode_enabled(), places)
        new = key not in self._seen and not again
        free = self._seen.setdefault(key, [])
        self._seen.move_to_end(key)
        if len(self._seen) > self._most:
            self._drop(key)
        if new or free is None:
            return None
        if not free and (Shelf.closed or self._failed or self._dropped > self._most):
            return None
        try:
            program = free.pop() if free else Program(function, arguments, needed, parameters)
        except RuntimeError as error:
            if isinstance(error, CaptureError):
                self._failed, Shelf.closed = True, Shelf.closed or self._instead is None
            _warn(self._what, self._instead or "it runs step by step instead", str(error).split("\n")[0])
            self._seen[key] = None
            return None
        return Lease(program, free)

    def _drop(self, newest: Any) -> None:
        """Drop the least recently used shape, preferring shapes that were never captured."""
        never = (key for key, programs in self._seen.items() if not programs and key != newest)
        self._dropped += bool(self._seen.pop(next(never, next(iter(self._seen)))))


@lru_cache
def _warn(what: str, instead: str, problem: str) -> None:
    complain(f"orthobench: engine=graph could not capture {what}, so {instead}: {problem}.")


class Replay(torch.autograd.Function):
    """(lease, number of arguments, arguments, parameters) -> outputs, by replaying the lease's program."""

    @staticmethod
    def forward(ctx: Any, lease: Lease, count: int, *tensors: Tensor) -> TensorTuple:
        assert lease.program is not None
        outputs = lease.program.forward(tensors[:count])
        ctx.mark_non_differentiable(*(y for y, d in zip(outputs, lease.program.differentiable, strict=True) if not d))
        if any(ctx.needs_input_grad):
            ctx.lease = lease
        return outputs

    @staticmethod
    @first_only("use engine=reference")
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        if ctx.lease.program is None:
            raise RuntimeError("engine=graph allows one backward pass per forward pass; use engine=fused.")
        found = ctx.lease.program.reverse(gradients)
        ctx.lease.release()
        return None, None, *found
