"""The whole sequence as one node of the graph, in pure PyTorch: on a CPU and a GPU, always there.

One autograd Function per cell family, with its reverse written by hand, or torch's own kernel where that is faster or
alone. A cell class of one's own joins by `FAMILIES[MyCell] = run`; one that does not is left to `reference`.
"""

from collections.abc import Callable

from torch import Tensor

from orthobench.cells.base import Cell, State
from orthobench.cells.elman import Elman
from orthobench.cells.gru import GRU
from orthobench.cells.scalar_gated import ScalarGated
from orthobench.scan.families import lookup
from orthobench.scan.fused import elman as fused_elman
from orthobench.scan.fused import gru as fused_gru
from orthobench.scan.fused import torch_kernels

RunCell = Callable[[Cell, Tensor, State], tuple[Tensor, State]]
FAMILIES: dict[type, RunCell] = {Elman: fused_elman.run, ScalarGated: fused_elman.run, GRU: fused_gru.run}


def why_not(cell: Cell) -> str | None:
    """Why this engine cannot run the cell; null when it can."""
    known = lookup(cell, FAMILIES) is not None or torch_kernels.supports(cell)
    return None if known else f"it has no hand-written reverse for {type(cell).__name__}"


def advantage(cell: Cell, device: str) -> str | None:
    """See `Engine.advantage`: on a GPU a loop of small kernels has none, torch's own have, by what is published."""
    if torch_kernels.supports(cell) and (device == "cuda" or lookup(cell, FAMILIES) is None):
        return f"torch's own {cell.torch_kernel()} kernel computes this cell"
    if device == "cuda" or why_not(cell) is not None:
        return None
    return "one hand-written pass each way, which keeps no more than its reverse needs"


def run(cell: Cell, x: Tensor, state: State) -> tuple[Tensor, State]:
    """Run `cell` over x from `state`; see `reference.run`."""
    family = torch_kernels.run if _torch_wins(cell) else lookup(cell, FAMILIES)
    assert family is not None
    return family(cell, x, state)


def _torch_wins(cell: Cell) -> bool:
    """CUDA's own kernels beat a loop of small ones; on a CPU our loop beats torch's, which has the only LSTM."""
    return torch_kernels.supports(cell) and (cell.U.is_cuda or lookup(cell, FAMILIES) is None)
