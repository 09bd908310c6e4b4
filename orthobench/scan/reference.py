"""The plain autograd loop: slow, simple, and the oracle for every other engine."""

import torch
from torch import Tensor

from orthobench.cells.base import Cell, Matrices, State
from orthobench.parametrizations.traced import in_full_precision


def why_not(cell: Cell) -> str | None:
    """Always None, because this engine runs every cell."""
    return None


def advantage(cell: Cell, device: str, sequences: int) -> str | None:
    """See `Engine.advantage`."""
    return "the autograd loop: no faster engine knows this cell"


def projected(cell: Cell, x: Tensor, W: Matrices) -> Tensor:
    """The projections (T, B, M) in the type of the loop over them."""
    p_TBM = cell.project(x)
    if W:
        return p_TBM.to(W[0].dtype)
    return p_TBM.to(cell.U.dtype.to_complex() if p_TBM.is_complex() else cell.U.dtype)


def run(cell: Cell, x: Tensor, state: State, taps: dict[int, Tensor] | None = None) -> tuple[Tensor, State]:
    """Run `cell` over x from `state`, in the precision of its matrices, or of its input weights where it has none.

    Args:
        cell: the cell.
        x: inputs (B, T, I), or tokens (B, T).
        state: initial state, tensors (B, N), or of the shapes that the cell's states have.
        taps: its keys are the steps, counted from 1, whose hidden state the caller wants as a tensor of the graph; the
            values are filled in here.

    Returns:
        All hidden states (B, T, N), or the outputs (B, T, F) of a cell whose steps return them; and the final state.
    """
    W = cell.matrices()
    seen, p_TBM = [], projected(cell, x, W)
    with in_full_precision(x.device.type):
        for t, p_t in enumerate(p_TBM.unbind(0), start=1):
            output, state = cell.advance(p_t, state, W)
            seen.append(output)
            if taps is not None and t in taps:
                taps[t] = state[0]
    return torch.stack(seen, dim=1) if seen else _nothing(cell, p_TBM, state), state


def _nothing(cell: Cell, p_TBM: Tensor, state: State) -> Tensor:
    """The empty output (B, 0, N) of a sequence without steps, connected to the graph so that gradients are zero."""
    shape = (cell.feature_size,) if cell.returns_output else state[0].shape[1:]
    dtype = p_TBM.dtype if cell.returns_output else state[0].dtype
    used = sum((p.sum() for p in cell.parameters()), start=p_TBM.sum())
    return p_TBM.new_zeros(p_TBM.shape[1], 0, *shape, dtype=dtype) + used
