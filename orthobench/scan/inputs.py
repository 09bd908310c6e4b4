"""Checks of the inputs and the initial state, made before any engine runs.

Torch's own kernels do not check shapes themselves, at least on a CPU, and would read foreign memory.
"""

import torch
from torch import Tensor

from orthobench.cells.base import Cell, State
from orthobench.common.registry import is_ours
from orthobench.parametrizations import base
from orthobench.parametrizations.traced import autocasts, traced

TOKENS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def checked(cell: Cell, x: Tensor, h0: State | None) -> State:
    """The state that `cell` starts from, tensors (B, ...).

    Args:
        cell: the cell.
        x: inputs (B, T, I) in the type of the cell's weights, or tokens (B, T). Autocast joins all types but float64.
        h0: a tuple of states (B, ...), or (1, ...) for the whole batch; the cell's own when None.

    Raises:
        ValueError: x or h0 has another shape, type or device.
    """
    name, I, U = type(cell).__name__, cell.input_size, cell.U
    refuse_layout(name, x)
    if x.is_floating_point():
        if x.dim() != 3 or (_projects(cell) and x.shape[-1] != I):
            raise ValueError(f"{name} needs inputs (B, T, {I}) or tokens (B, T): x is {tuple(x.shape)}.")
        cast = autocasts(U.device.type) and torch.float64 not in (x.dtype, U.dtype)
        if x.dtype != U.dtype and not cast:
            raise ValueError(f"x is {x.dtype} and the weights of {name} are {U.dtype}: use x.to({U.dtype}).")
    elif x.dtype not in TOKENS or x.dim() != 2:
        raise ValueError(
            f"{name} needs inputs (B, T, {I}) in {U.dtype} or tokens (B, T) in whole numbers: "
            f"x is {tuple(x.shape)} in {x.dtype}."
        )
    elif x.device.type == "cpu" and x.numel() and _is_plain(x) and int(x.min()) < 0:
        raise ValueError(f"x has the token {int(x.min())}: tokens are whole numbers from 0.")
    if x.device != U.device:
        raise ValueError(f"x is on {x.device} and the weights of {name} on {U.device}: use x.to({str(U.device)!r}).")
    if h0 is None:
        return cell.initial_state(x.shape[0])
    return _states(cell, x.shape[0], h0)


def _is_plain(x: Tensor) -> bool:
    """Return True if values may be read: nothing traces, compiles or maps, and no GPU is waited for."""
    return not (torch.compiler.is_compiling() or traced(x) or base.wrapped(x) or base.reading_waits(x))


def refuse_layout(name: str, x: Tensor) -> None:
    """Refuse a tensor whose numbers do not lie in memory one by one.

    Raises:
        ValueError: it is sparse, nested, or in a layout of a library of its own.
    """
    if x.layout != torch.strided:
        dense = "torch.nested.to_padded_tensor(x, 0.0) with lengths=" if x.is_nested else "x.to_dense()"
        raise ValueError(f"{name} needs a dense tensor, and x is in {x.layout}: use {dense}.")


def _states(cell: Cell, B: int, h0: State) -> State:
    own = cell.initial_state(1)
    wanted = ", ".join(str((B, *s.shape[1:])) for s in own)
    allowed = f"{type(cell).__name__} needs a tuple of {len(own)} in {own[0].dtype} on {own[0].device}: {wanted}"
    if not isinstance(h0, tuple | list) or len(h0) != len(own):
        given = f"a tensor {tuple(h0.shape)}" if isinstance(h0, Tensor) else f"{len(h0)} tensors"
        raise ValueError(f"the initial state is {given}; {allowed}.")
    for i, (s, like) in enumerate(zip(h0, own, strict=True)):
        if s.shape[1:] != like.shape[1:] or s.shape[:1] not in ((B,), (1,)):
            raise ValueError(f"state {i} is {tuple(s.shape)}; {allowed}.")
        if s.dtype != like.dtype or s.device != like.device:
            raise ValueError(f"state {i} is {s.dtype} on {s.device}; {allowed}.")
    return tuple(s.expand(B, *s.shape[1:]) for s in h0)


def _projects(cell: Cell) -> bool:
    """Return True if the cell uses the package's own projection of inputs of width I; a user's cell may redefine it."""
    return type(cell).project is Cell.project or is_ours(type(cell))
