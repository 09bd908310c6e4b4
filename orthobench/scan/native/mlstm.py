"""mLSTM in C, from inputs to outputs; `cells/mlstm.py` has the equations, and `native/deltaproduct.py` the passes."""

from typing import Any

import torch
from torch import Tensor

from orthobench.cells import mlstm
from orthobench.cells.base import State
from orthobench.scan.fused import matrix_cells
from orthobench.scan.native import matrix_memory
from orthobench.scan.native.convolution import convolve
from orthobench.scan.native.library import Struct, long, pointer
from orthobench.scan.native.outer import orthogonal_scan

NUMBERS = ("T", "B", "H", "d", "e", "width", "K", "inside", "P_row", "P_time", "dP_row", "dP_time")
GIVEN = ("P", "before", "kernel", "G", "bias", "scale", "C0", "n0", "m0", "C", "n", "m", "kept", "Y")
MADE = ("dY", "dP", "dbefore", "dkernel", "dG", "dbias", "dscale", "dsum", "dC", "dn", "dm")


class MemoryHeads(Struct):
    """The struct of the same name in mlstm.c."""

    apart = frozenset(("P", "dP"))
    _fields_ = (*((name, long) for name in NUMBERS), *((name, pointer) for name in (*GIVEN, *MADE)))


def run(cell: Any, x: Tensor, state: State) -> tuple[Tensor, State]:
    """Run an `MLSTM` cell over x from `state`; see `reference.run`."""
    if cell.orthogonal:
        return matrix_cells.mlstm(cell, x, state, convolve=convolve, orthogonal=orthogonal_scan)
    H, d, e = cell.state_shapes()[0]
    inside = cell.gate_inputs == "qkv"
    settings = {"H": H, "d": d, "e": e, "K": cell.convolution or 0, "inside": inside}
    kernel = None if cell.convolution is None else cell.kernel
    gates = (cell.G, torch.cat([cell.b["i"], cell.b["f"]])) if inside else (None, None)
    inputs = 2 * H * d + H * e
    shapes = {"kernel": (settings["K"], 2 * H * d), "G": (2 * H, inputs), "bias": (2 * H,), "scale": (H * e,)}
    memory = matrix_memory.MatrixMemory(
        "mlstm", MemoryHeads, settings, 2 * H * d, H * e, H * (d * e + d + 1), 1, ("C", "n", "m"), shapes
    )
    return matrix_memory.run(cell, x, state, memory, mlstm.MLSTM, (kernel, *gates, cell.scale))
