"""mLSTM in C, from inputs to outputs; `cells/mlstm.py` has the equations, and `native/deltaproduct.py` the passes."""

from typing import Any

import torch
from torch import Tensor

from orthobench.cells import mlstm
from orthobench.cells.base import State
from orthobench.scan.fused import matrix_cells
from orthobench.scan.native import matrix_memory
from orthobench.scan.native.convolution import convolve
from orthobench.scan.native.library import long, pointer
from orthobench.scan.native.outer import orthogonal_scan
from orthobench.scan.steps import at_steps, marks
from orthobench.scan.uncompiled import uncompiled

OWN = ("G", "biases", "scale", "C0", "n0", "m0", "C", "n", "m", "kept", "dG", "dbiases", "dscale", "dC", "dn", "dm")


class MemoryHeads(matrix_memory.HeadSequences):
    """The struct of the same name in mlstm.c, but for the fields of all cells."""

    _fields_ = (("inside", long), *((name, pointer) for name in OWN))


def run(cell: Any, x: Tensor, state: State) -> tuple[Tensor, State]:
    """Run an `MLSTM` cell over x from `state`; see `reference.run`."""
    if cell.orthogonal:
        return run_at(cell, x, state, None)
    H, d, e = cell.state_shapes()[0]
    inside = cell.gate_inputs == "qkv"
    channels, K = 2 * H * d, cell.convolution or 0
    settings = {"H": H, "d": d, "e": e, "K": K, "channels": channels, "inside": inside}
    gates = (cell.G, torch.cat([cell.b["i"], cell.b["f"]])) if inside else (None, None)
    shapes = {"kernel": (K, channels), "G": (2 * H, channels + H * e), "biases": (2 * H,), "scale": (H * e,)}
    states = ("C", "n", "m", *(("P",) if K else ()))
    memory = matrix_memory.MatrixMemory("mlstm", MemoryHeads, settings, H * (d * e + d + 1), 1, states, shapes)
    return matrix_memory.run(cell, x, state, memory, mlstm.MLSTM, (cell.kernel if K else None, *gates, cell.scale))


@uncompiled
def run_at(cell: Any, x: Tensor, state: State, steps: Tensor | None) -> tuple[Tensor, State]:
    """The same with the outputs at `steps` (B, K) alone if given; orthogonal reads are computed at no other step."""
    if not cell.orthogonal:
        y, end = run(cell, x, state)
        return at_steps(y, steps), end
    wanted, done = None if steps is None else marks(steps, x.shape[1]).to(cell.U.dtype), 0

    def scan(qkv: Tensor, *others: Any) -> tuple[Any, ...]:
        nonlocal done
        first, done = done, done + qkv.shape[1]
        part = None if wanted is None else wanted[:, first:done].contiguous()
        return orthogonal_scan(qkv, *others, wanted=part)

    y, end = matrix_cells.mlstm(cell, x, state, convolve=convolve, orthogonal=scan)
    return at_steps(y, steps), end
