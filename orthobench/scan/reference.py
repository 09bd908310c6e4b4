"""The plain autograd loop: slow, obvious, and the oracle for every other engine."""

import torch
from torch import Tensor

from orthobench.cells.base import Cell, State


def why_not(cell: Cell) -> str | None:
    """Null: it runs every cell."""
    return None


def advantage(cell: Cell, device: str) -> str | None:
    """See `Engine.advantage`."""
    return "the autograd loop: no faster engine knows this cell"


def run(cell: Cell, x: Tensor, state: State, taps: dict[int, Tensor] | None = None) -> tuple[Tensor, State]:
    """Run `cell` over x from `state`, in the precision of its matrices.

    Args:
        cell: the cell.
        x: inputs (B, T, I), or tokens (B, T).
        state: initial state, tensors (B, N).
        taps: steps (counted from 1) whose hidden state is wanted as a tensor of the graph; filled in here.

    Returns:
        All hidden states (B, T, N), and the final state.
    """
    W = cell.matrices()
    hidden, p_TBM = [], cell.project(x).to(W[0].dtype)
    with torch.autocast(x.device.type, enabled=False):
        for t, p_t in enumerate(p_TBM.unbind(0), start=1):
            state = cell.step(p_t, state, W)
            hidden.append(state[0])
            if taps is not None and t in taps:
                taps[t] = state[0]
    return torch.stack(hidden, dim=1), state
