"""DeltaNet, Gated DeltaNet and DeltaProduct in C, from the projection of the input to what the heads read;
`cells/deltaproduct.py` and `cells/gated_outer.py` have the equations.

Sequences are done in blocks of 64 writes, of which the states before each are kept; the backward pass does a block
again, and keeps nothing else. Within it, chunks of 16 writes are products of matrices: `fused/matrix_state.py`. Let L
be the keys above the queries, Y = diag(beta) U, M = (L K^T) * D where a write reads only what is before it, and N the
gradient of what rows of L read: dO for a query, and -Z for a key, which has read what is not written. Then

    dY = D_T K dS_T + M_Q^T dO - M_K^T Z,   Z = diag(beta) dY,   dV = Z,   dbeta = rows of dY . U
    dM = (N Y^T) * D,   dL = F N S_0^T + dM K,   dK <- dK + dM^T L + D_T Y dS_T^T,   dS_0 = F_T dS_T + L^T F N

and the logarithm of a gate gets all products of numbers and their gradients that it is a factor of.
"""

from ctypes import c_double
from typing import Any

from torch import Tensor

from orthobench.cells import deltaproduct
from orthobench.cells.base import State
from orthobench.cells.gated_outer import GatedOuter
from orthobench.scan.native import matrix_memory
from orthobench.scan.native.library import long, pointer

OWN = ("A", "dt", "scale", "S0", "S", "kept", "dA", "ddt", "dscale", "dS")


class DeltaHeads(matrix_memory.HeadSequences):
    """The struct of the same name in deltaproduct.c, but for the fields of all cells."""

    _fields_ = (
        *((name, long) for name in ("writes", "gated", "shown")),
        *((name, c_double) for name in ("reach", "query_scale")),
        *((name, pointer) for name in OWN),
    )


def run(cell: Any, x: Tensor, state: State) -> tuple[Tensor, State]:
    """Run a `DeltaProduct` cell over x from `state`; see `reference.run`."""
    settings = {"gated": cell.gated, "query_scale": cell.query_scale, "channels": cell.channels}
    return _run(cell, x, state, deltaproduct.DeltaProduct, writes=cell.products, **settings)


def is_gated_deltanet(cell: GatedOuter) -> bool:
    """Return True if a cell is a DeltaNet, with a gate or without, whose projections have the same order."""
    gate = cell.output_gate == "none" or (cell.output_gate == "silu" and not cell.low_rank_gate)
    return cell.rule == "delta" and cell.decay in ("none", "scalar") and gate


def gated_deltanet(cell: Any, x: Tensor, state: State) -> tuple[Tensor, State]:
    """Run a `GatedOuter` cell that `is_gated_deltanet` over x from `state`; see `reference.run`."""
    settings = {"gated": cell.decay == "scalar", "query_scale": cell.key_width**-0.5, "channels": cell.sizes[0]}
    return _run(cell, x, state, GatedOuter, writes=1, **settings)


def _run(cell: Any, x: Tensor, state: State, own: Any, writes: int, channels: int, **more: Any) -> tuple[Tensor, State]:
    H, d, e = cell.state_shapes()[0]
    settings = {"H": H, "d": d, "e": e, "writes": writes, "reach": cell.reach, **more}
    settings |= {"shown": cell.output_gate != "none", "K": cell.convolution or 0, "channels": channels}
    shapes = {"kernel": (settings["K"], channels), "A": (H,), "dt": (H,), "scale": (e,)}
    gate = (cell.A, cell.dt) if settings["gated"] else (None, None)
    parameters = (cell.kernel if settings["K"] else None, *gate, cell.scale)
    states = ("S", *(("P",) if settings["K"] else ()))
    memory = matrix_memory.MatrixMemory("deltaproduct", DeltaHeads, settings, H * d * e, writes, states, shapes)
    return matrix_memory.run(cell, x, state, memory, own, parameters, cell.O)
