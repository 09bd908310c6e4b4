"""Cells whose state is a matrix, in C: from inputs to outputs, a window of steps of one sequence after another.

Projections, and what heads read, are in scratch memory for a window alone and are computed again in the backward pass,
which keeps inputs and the states before blocks of steps. Sums over sequences are added in units, whose number depends
on shapes alone, so that bits do not depend on the number of threads.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from orthobench.cells.base import State
from orthobench.parametrizations.derivatives import first_only
from orthobench.scan.fused.elman import Gradients
from orthobench.scan.native.library import Struct, long, pack, pointer, room, with_rows
from orthobench.scan.native.projection import source

UNITS = 64  # at most
STEPS = 256  # of a unit, at least
BLOCK = 64  # writes, as in blocks.h


class HeadSequences(Struct):
    """The struct of the same name in sequences.h, with which those of the cells begin."""

    apart = frozenset(("X", "dX", "tokens"))
    _fields_ = (
        *((name, long) for name in ("T", "B", "H", "d", "e", "I", "width", "N", "K", "channels", "unit")),
        *((name, long) for name in ("X_row", "X_time", "dX_row", "dX_time", "tokens_row", "tokens_time")),
        *((name, pointer) for name in ("X", "bias", "UT", "U", "tokens", "table", "OT", "O", "kernel", "P0", "P")),
        *((name, pointer) for name in ("Y", "dY", "dX", "dP")),
        *((name, pointer) for name in ("dU", "dbias", "dO", "dkernel")),
    )


@dataclass(frozen=True)
class MatrixMemory:
    """The loops of one cell.

    Attributes:
        loops: the prefix of the compiled functions.
        struct: their arguments.
        settings: values of its number fields.
        kept: numbers of the states of a sequence.
        writes: per step.
        states: names of pointers, those of last values; a gradient's has a d in front, a first value's a 0 behind.
        parameters: the same of parameters, with their shapes.
    """

    loops: str
    struct: type[HeadSequences]
    settings: dict[str, Any]
    kept: int
    writes: int
    states: tuple[str, ...]
    parameters: dict[str, tuple[int, ...]]

    @property
    def width(self) -> int:
        """The width of what the heads read."""
        return self.settings["H"] * self.settings["e"]

    def run(self, way: str, x: Tensor, U: Tensor | None, out: Tensor, **tensors: Tensor | None) -> None:
        """Call the loops for all sequences, with x and U as `source` gives them and `out` (B, T, N) or its gradient."""
        (B, T, N), (width, I) = out.shape, x.shape[-1:] * 2 if U is None else U.shape
        unit = self.unit(B, T, I, N)
        given = self.struct(T=T, B=B, I=I, width=width, N=N, unit=unit, **self.settings)
        if x.dim() == 2:
            tensors |= {"tokens": x.T, "table": _transposed(U).contiguous()}
        else:
            tensors |= {"X": x.transpose(0, 1), **_packed(UT=_transposed(U), U=U if "dX" in tensors else None)}
        size = given.scratch(self.loops, way, out.dtype)
        given.run(f"{self.loops}_{way}", -(-B // unit), out, size, **tensors)

    def unit(self, B: int, T: int, I: int, N: int) -> int:
        """Number of sequences in a unit: its sums are small beside what they are made from."""
        return max(-(-B // UNITS), -(-max(STEPS, I, N) // max(T, 1)))


def run(
    cell: Any,
    x: Tensor,
    state: State,
    memory: MatrixMemory,
    own: Any,
    parameters: tuple[Tensor | None, ...],
    O: Tensor | None = None,
) -> tuple[Tensor, State]:
    """Run a cell over x from `state`; see `reference.run`.

    Args:
        cell: the cell.
        x: see `reference.run`.
        state: its matrices and so on, and the last inputs of a convolution where there is one.
        memory: its loops.
        own: the class whose method `project` is U x + `joint_bias` and no more.
        parameters: those of the loops, None where the cell has none.
        O: what mixes the outputs of all heads, (N, V), or None.

    Raises:
        ValueError: a projection, a parameter or a state that does not fit, before C would misread it.
    """
    (B, T), N, shapes = x.shape[:2], cell.hidden_size, cell.state_shapes()
    units = -(-B // memory.unit(B, T, cell.U.shape[1], N))
    given, U, bias = source(cell, x, own, units)
    width = given.shape[-1] if U is None else len(U)
    if width != sum(cell.sizes):
        raise ValueError(f"projection of width {width} does not fit: {sum(cell.sizes)} is needed.")
    needed = {"O": (N, memory.width), **memory.parameters}
    for one, (name, shape) in zip((O, *parameters), needed.items(), strict=True):
        if one is not None and one.shape != shape:
            raise ValueError(f"{name} {tuple(one.shape)} does not fit: {shape} is needed.")
    if any(s.shape[1:] != shape for s, shape in zip(state, shapes, strict=True)):
        raise ValueError(f"states {[tuple(s.shape) for s in state]} do not fit: {list(shapes)} are needed for each.")
    states = [s.expand(B, *s.shape[1:]) for s in state]
    out, *last = MemoryScan.apply(memory, given, U, bias, O, *states, *parameters)
    return out, tuple(last)


def values_per_step(cell: Any, writes: int = 1) -> int:
    """Numbers kept at the peak of a backward pass, as `Cell.values_per_step`; the sums of units are at most len(U)."""
    H, d, e = cell.state_shapes()[0]
    return len(cell.U) + 4 * H * e + writes * H * d * (e + 1) // BLOCK


class MemoryScan(torch.autograd.Function):
    """(memory, x, U, bias, O, states, parameters) -> (out, states); it saves no projection.

    x, U and bias are as `source` gives them, O is (N, V) and out (B, T, N). Where O is None out is what the heads read.
    """

    @staticmethod
    def forward(ctx: Any, memory: MatrixMemory, x: Tensor, *given: Any) -> Any:
        U, bias, O, *rest = (None if one is None else one.contiguous() for one in given)
        x = x if x.dim() == 2 else with_rows(x)
        states, parameters = _named(memory, rest)
        last = {name: torch.empty_like(one) for name, one in states.items()}
        like, (B, T) = states[memory.states[0]], x.shape[:2]
        out = room(like.new_empty(()).expand(B, T, memory.width if O is None else len(O)))
        kept: Any = like.new_empty(B, _blocks(T, memory.writes), memory.kept) if any(ctx.needs_input_grad) else None
        inputs = {f"{name}0": one for name, one in states.items()} | parameters
        inputs |= _packed(OT=_transposed(O))
        memory.run("forward", x, U, out, Y=out, bias=bias, kept=kept, **inputs, **last)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x, U, bias, O, kept, *rest)
        ctx.memory = memory
        return out, *last.values()

    @staticmethod
    @first_only("use engine=reference")
    def backward(ctx: Any, dout: Any, *dlast: Any) -> Gradients:  # type: ignore[override]
        memory, (x, U, bias, O, kept, *rest) = ctx.memory, ctx.saved_tensors
        states, parameters = _named(memory, rest)
        like, (B, T) = states[memory.states[0]], x.shape[:2]
        dout = like.new_zeros(B, T, memory.width if O is None else len(O)) if dout is None else dout.contiguous()
        dstates = {
            f"d{name}": torch.zeros_like(one) if d is None else d.clone(memory_format=torch.contiguous_format)
            for d, (name, one) in zip(dlast, states.items(), strict=True)
        }
        units = -(-B // memory.unit(B, T, x.shape[-1] if U is None else U.shape[1], dout.shape[-1]))
        summed = {"U": _transposed(U), "bias": bias, "O": O, **parameters}
        sums = {f"d{name}": None if one is None else like.new_zeros(units, *one.shape) for name, one in summed.items()}
        dx = (
            torch.empty_like(x, memory_format=torch.contiguous_format) if U is None or ctx.needs_input_grad[1] else None
        )
        own = dstates | sums | ({} if dx is None else {"dX": dx.transpose(0, 1)})
        inputs = {f"{name}0": one for name, one in states.items()} | parameters
        inputs |= _packed(O=O)
        memory.run("backward", x, U, dout, dY=dout, bias=bias, kept=kept, **inputs, **own)
        dU, dbias, dO, *dparameters = (None if one is None else one.sum(0) for one in sums.values())
        return None, dx, _transposed(dU), dbias, dO, *dstates.values(), *dparameters


def _transposed(matrix: Any) -> Any:
    return None if matrix is None else matrix.T


def _packed(**matrices: Tensor | None) -> dict[str, Tensor | None]:
    return {name: None if one is None else pack(one) for name, one in matrices.items()}


def _named(memory: MatrixMemory, rest: Any) -> tuple[dict[str, Tensor], dict[str, Tensor | None]]:
    count = len(memory.states)
    return (
        dict(zip(memory.states, rest[:count], strict=True)),
        dict(zip(memory.parameters, rest[count:], strict=True)),
    )


def _blocks(T: int, writes: int) -> int:
    return -(-T // max(BLOCK // writes, 1))
