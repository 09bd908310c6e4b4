"""The whole sequence in pure PyTorch, on a CPU or a GPU.

Per cell family there is one autograd Function with a hand-written backward pass, or, where the recurrence is linear in
the state, many steps are done at once; torch's own kernel is used where it is faster or the only one. Your own cell
class joins by `FAMILIES[MyCell] = run`; without that it runs on `reference`.
"""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from orthobench.cells.attention import Attention
from orthobench.cells.base import Cell, State
from orthobench.cells.convolution import InputConvolution
from orthobench.cells.cornn import CoRNN
from orthobench.cells.deltaproduct import DeltaProduct
from orthobench.cells.elman import Elman
from orthobench.cells.gated_outer import GatedOuter
from orthobench.cells.gru import GRU
from orthobench.cells.lem import LEM
from orthobench.cells.lru import LRU
from orthobench.cells.mamba2 import Mamba2
from orthobench.cells.mamba3 import Mamba3
from orthobench.cells.mingru import MinGRU
from orthobench.cells.minlstm import MinLSTM
from orthobench.cells.mlstm import MLSTM
from orthobench.cells.outer import Outer
from orthobench.cells.rotation import Rotation
from orthobench.cells.rwkv7 import RWKV7
from orthobench.cells.scalar_gated import ScalarGated
from orthobench.cells.unicornn import UnICORNN
from orthobench.scan.families import lookup
from orthobench.scan.fused import (
    attention,
    convolution,
    cornn,
    lem,
    linear,
    matrix_cells,
    outer,
    torch_kernels,
    unicornn,
)
from orthobench.scan.fused import elman as fused_elman
from orthobench.scan.fused import gru as fused_gru
from orthobench.scan.gpu import choice

RunCell = Callable[[Cell, Tensor, State], tuple[Tensor, State]]
FAMILIES: dict[type, RunCell] = {
    Elman: fused_elman.run,
    ScalarGated: fused_elman.run,
    GRU: fused_gru.run,
    Attention: attention.run,
    LEM: lem.run,
    CoRNN: cornn.run,
    UnICORNN: unicornn.run,
    LRU: linear.run,
    MinGRU: linear.run,
    MinLSTM: linear.run,
    Rotation: linear.run,
    InputConvolution: convolution.run,
    DeltaProduct: matrix_cells.delta_product,
    MLSTM: matrix_cells.mlstm,
    **dict.fromkeys((GatedOuter, Mamba2, Mamba3, RWKV7), outer.run),
}
AT_STEPS = {Attention: attention.run}


def why_not(cell: Cell) -> str | None:
    """Why this engine cannot run the cell; None when it can."""
    known = lookup(cell, FAMILIES) is not None or torch_kernels.supports(cell)
    return None if known else f"it has no loop for {type(cell).__name__}"


def advantage(cell: Cell, device: str, sequences: int) -> str | None:
    """See `Engine.advantage`.

    On a GPU a loop of small kernels has none; torch's own kernel has one where it is the cheapest that is known.
    """
    if device == "cuda":
        return choice.advantage("torch", cell, device, sequences) if torch_kernels.supports(cell) else None
    if _torch_wins(cell, device):
        return f"torch's own {cell.torch_kernel()} kernel computes this cell"
    return "one hand-written pass each way, or many steps at once" if why_not(cell) is None else None


def values_per_step(cell: Any) -> int:
    """Numbers from which the memory of a step is estimated, as `Cell.values_per_step`.

    Of a matrix state, some numbers for every pair of writes of a window in every head are kept beside it. An orthogonal
    read keeps 25 matrices of the size of the state, as counted.
    """
    if not isinstance(cell, DeltaProduct | MLSTM | Outer):
        return cell.values_per_step
    if getattr(cell, "orthogonal", False):
        return matrix_cells.values_per_step(cell) + 25 * cell.heads * cell.key_width * cell.width
    return matrix_cells.values_per_step(cell) + 4 * cell.heads * getattr(cell, "products", 1) * matrix_cells.WINDOW


def run(cell: Cell, x: Tensor, state: State) -> tuple[Tensor, State]:
    """Run `cell` over x from `state`; see `reference.run`."""
    family = torch_kernels.run if _torch_wins(cell, cell.U.device.type) else lookup(cell, FAMILIES)
    assert family is not None
    return family(cell, x, state)


def _torch_wins(cell: Cell, device: str) -> bool:
    """Return True if torch's kernel is taken: on CUDA always, on a CPU only for the LSTM, for which there
    is no loop here.
    """
    return torch_kernels.supports(cell) and (device == "cuda" or lookup(cell, FAMILIES) is None)
