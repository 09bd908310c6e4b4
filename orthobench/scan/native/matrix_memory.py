"""Cells whose state is a matrix, in C: from inputs to outputs of some sequences at a time.

Projections, and what heads read, are in memory for a group of sequences alone and are computed again in the backward
pass, which keeps inputs and the states before blocks of steps. Sums over sequences are added unit by unit, and the
number of sequences in a unit depends on their length alone, so that bits do not depend on the number of threads.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from orthobench.cells.base import State
from orthobench.parametrizations.derivatives import first_only
from orthobench.scan.fused.elman import Gradients
from orthobench.scan.native.library import (
    SMALLEST_SHARE,
    Struct,
    add_outer,
    long_product,
    room,
    with_rows,
)
from orthobench.scan.reference import projected

UNIT = 1024  # steps, at least
BLOCK = 64  # writes, as in blocks.h


@dataclass(frozen=True)
class MatrixMemory:
    """The loops of one cell.

    Attributes:
        loops: the prefix of the compiled functions.
        struct: their arguments.
        settings: values of its number fields.
        channels: how many of the first numbers of a projection are convolved.
        width: of the outputs that the loops write.
        kept: numbers of the states of a sequence.
        writes: per step.
        states: names of pointers, those of last values; a gradient's has a d in front.
        parameters: the same of parameters, with their shapes.
    """

    loops: str
    struct: type[Struct]
    settings: dict[str, Any]
    channels: int
    width: int
    kept: int
    writes: int
    states: tuple[str, ...]
    parameters: dict[str, tuple[int, ...]]

    def run(self, way: str, p: Tensor, **tensors: Tensor | None) -> None:
        """Call the loops for all sequences of projections p (B, T, M)."""
        B, T, width = p.shape
        given = self.struct(T=T, B=B, width=width, **self.settings)
        size = given.scratch(self.loops, way, p.dtype)
        given.run(f"{self.loops}_{way}", B, p, size, P=p.transpose(0, 1), **tensors)


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
        own: the class whose method `project` is U x + `joint_bias` and no more. The loops write the sums of the
            bias's gradient, `dsum`, as far as the cell has one.
        parameters: those of the loops, null where the cell has none.
        O: what mixes the outputs of all heads, (N, V), or null.

    Raises:
        ValueError: a projection, a parameter or a state that does not fit.
    """
    U, B = cell.U, x.shape[0]
    usual = x.dtype == U.dtype and not torch.is_autocast_enabled("cpu") and type(cell).project is own.project
    source: Any = (x, U, cell.joint_bias()) if usual else (projected(cell, x, ()).transpose(0, 1), None, None)
    width, shapes = len(U) if usual else source[0].shape[-1], cell.state_shapes()
    if width != sum(cell.sizes):
        raise ValueError(f"projection of width {width} does not fit: {sum(cell.sizes)} is needed.")
    for one, (name, shape) in zip(parameters, memory.parameters.items(), strict=True):
        if one is not None and one.shape != shape:
            raise ValueError(f"{name} {tuple(one.shape)} does not fit: {shape} is needed.")
    if any(s.shape[1:] != shape for s, shape in zip(state, shapes, strict=True)):
        raise ValueError(f"states {[tuple(s.shape) for s in state]} do not fit: {list(shapes)} are needed for each.")
    states = [s.expand(B, *s.shape[1:]) for s in state]
    before = states.pop() if len(states) > len(memory.states) else None
    out, latest, *last = MemoryScan.apply(memory, *source, O, before, *states, *parameters)
    return out, (*last, *(() if latest is None else (latest,)))


def values_per_step(cell: Any, writes: int = 1) -> int:
    """Numbers kept at the peak of a backward pass, as `Cell.values_per_step`, where all sequences are done at once."""
    H, d, e = cell.state_shapes()[0]
    return 2 * len(cell.U) + 4 * H * e + writes * H * d * (e + 1) // BLOCK


class MemoryScan(torch.autograd.Function):
    """(memory, x, U, bias, O, before, states, parameters) -> (out, before, states); it saves no projection.

    x is (B, T, I), U (M, I), bias (M), O (N, V) and out (B, T, N). Where U is null x is the projection itself, and
    where O is null out is what the loops write.
    """

    @staticmethod
    def forward(ctx: Any, memory: MatrixMemory, x: Tensor, *given: Any) -> Any:
        U, bias, O, before, *rest = (None if one is None else one.contiguous() for one in given)
        x = with_rows(x) if U is None else x.contiguous()
        states, parameters = _named(memory, rest)
        last = {name: torch.empty_like(one) for name, one in states.items()}
        B, T, _ = x.shape
        out = room(x, memory.width if O is None else len(O))
        latest = None if before is None else torch.empty_like(before)
        kept: Any = x.new_empty(B, _blocks(T, memory.writes), memory.kept) if any(ctx.needs_input_grad) else None
        p_room, y_room = _room(x, 0 if U is None else len(U)), _room(x, 0 if O is None else memory.width)
        for rows, _ in groups(B, T):
            p, y = _projection(x[rows], U, bias, p_room), out[rows] if O is None else y_room[: _count(rows)]
            own = _of(rows, before=before, kept=kept, **{f"{name}0": one for name, one in states.items()})
            memory.run("forward", p, Y=y, **own, **parameters, **_of(rows, **last))
            if O is not None:
                long_product(y.flatten(0, 1), O.T, None, out[rows].flatten(0, 1))
            if latest is not None and before is not None:
                latest[rows] = _latest(before[rows], p)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x, U, bias, O, before, kept, *rest)
        ctx.memory = memory
        return out, latest, *last.values()

    @staticmethod
    @first_only("use engine=reference")
    def backward(ctx: Any, dout: Any, dlatest: Any, *dlast: Any) -> Gradients:  # type: ignore[override]
        memory, (x, U, bias, O, before, kept, *rest) = ctx.memory, ctx.saved_tensors
        states, parameters = _named(memory, rest)
        B, T, _ = x.shape
        dout = x.new_zeros(B, T, memory.width if O is None else len(O)) if dout is None else dout.contiguous()
        dstates = {
            f"d{name}": torch.zeros_like(one) if d is None else d.clone(memory_format=torch.contiguous_format)
            for d, (name, one) in zip(dlast, states.items(), strict=True)
        }
        sums = {f"d{name}": None if one is None else x.new_zeros(B, *one.shape) for name, one in parameters.items()}
        dbefore, dO = (None if one is None else torch.zeros_like(one) for one in (before, O))
        dsum = None if bias is None else x.new_zeros(B, len(bias))
        dx: Any = torch.empty_like(x) if U is None or ctx.needs_input_grad[1] else None
        dU_t: Any = None if U is None else U.new_zeros(U.shape[::-1])
        widths = 0 if U is None else len(U), 0 if O is None else memory.width
        p_room, dp_room, y_room, dy_room = (_room(x, width) for width in widths for _ in range(2))
        for rows, units in groups(B, T):
            count = _count(rows)
            p = _projection(x[rows], U, bias, p_room)
            dp = dx[rows] if U is None else dp_room[:count]  # type: ignore[index]
            y, dy = (None, dout[rows]) if O is None else (y_room[:count], dy_room[:count])
            if O is not None:
                long_product(dout[rows].flatten(0, 1), O, None, dy.flatten(0, 1))
            own = _of(rows, before=before, kept=kept, dbefore=dbefore, dsum=dsum, **sums, **dstates)
            own |= _of(rows, **{f"{name}0": one for name, one in states.items()})
            memory.run("backward", p, Y=y, dY=dy, dP=dp.transpose(0, 1), **own, **parameters)
            if dlatest is not None and dbefore is not None:
                _latest_back(dlatest[rows], dbefore[rows], dp)
            for unit in units:
                part = slice(unit.start - rows.start, unit.stop - rows.start)
                _add_products((dout[unit], y, dO), (x[unit], dp, dU_t), part=part)
            if U is not None and dx is not None:
                long_product(dp.flatten(0, 1), U, None, dx[rows].flatten(0, 1))
        dbias, *dparameters = (None if one is None else one.sum(0) for one in (dsum, *sums.values()))
        return None, dx, None if U is None else dU_t.T, dbias, dO, dbefore, *dstates.values(), *dparameters


def _add_products(*each: tuple[Tensor, Any, Any], part: slice) -> None:
    """Add sums of outer products: of rows, with the rows of a part of others, to a gradient, where there is one."""
    for D, others, gradient in each:
        if gradient is not None:
            add_outer(D, others[part], gradient)


def _count(rows: slice) -> int:
    return rows.stop - rows.start


def _unit(T: int) -> int:
    return max(SMALLEST_SHARE, -(-UNIT // max(T, 1)))


def _size(B: int, T: int) -> int:
    return max(min(_unit(T) * torch.get_num_threads(), B), 1)


def groups(B: int, T: int) -> Iterator[tuple[slice, list[slice]]]:
    """Sequences that are done at once, as many for every thread, and the units that they are made of."""
    unit, size = _unit(T), _size(B, T)
    for first in range(0, B, size):
        last = min(first + size, B)
        yield slice(first, last), [slice(i, min(i + unit, last)) for i in range(first, last, unit)]


def _room(x: Tensor, width: int) -> Any:
    """Memory for numbers of the sequences of a group, (sequences, T, width); null for none."""
    return room(x[: _size(*x.shape[:2])], width) if width else None


def _named(memory: MatrixMemory, rest: Any) -> tuple[dict[str, Tensor], dict[str, Tensor | None]]:
    count = len(memory.states)
    return (
        dict(zip(memory.states, rest[:count], strict=True)),
        dict(zip(memory.parameters, rest[count:], strict=True)),
    )


def _of(rows: slice, **tensors: Tensor | None) -> dict[str, Tensor | None]:
    return {name: None if tensor is None else tensor[rows] for name, tensor in tensors.items()}


def _blocks(T: int, writes: int) -> int:
    return -(-T // max(BLOCK // writes, 1))


def _projection(x: Tensor, U: Tensor | None, bias: Tensor | None, p_room: Any) -> Tensor:
    if U is None:
        return x
    p = p_room[: len(x)]
    long_product(x.flatten(0, 1), U.T, bias, p.flatten(0, 1))
    return p


def _latest(before: Tensor, p: Tensor) -> Tensor:
    """The last inputs, which the convolution sees from the next steps on, (B, K - 1, C)."""
    count, C = before.shape[1:]
    whole = torch.cat([before, p[:, max(p.shape[1] - count, 0) :, :C]], 1)
    return whole[:, whole.shape[1] - count :]


def _latest_back(dlatest: Tensor, dbefore: Tensor, dp: Tensor) -> None:
    """Add the gradient of `_latest` to those of what it was made from."""
    count, C = dlatest.shape[1:]
    T = dp.shape[1]
    seen = min(T, count)
    dp[:, T - seen :, :C] += dlatest[:, count - seen :]
    dbefore[:, T:] += dlatest[:, : count - seen]
