"""minGRU, minLSTM and Rotation in C; their files in cells have the equations.

With G_t = dL/dh_t, q the share that is given and k = 1 - q that which is kept, one step of the backward pass of a real
state is

    d ln(q / k) = (v - h_{t-1}) q k G,   dv = q G,   G <- k G + what comes from outside

For minGRU ln(q / k) is z's projection, for minLSTM ln sigmoid(i) - ln sigmoid(f). Of a complex state with the factor
a = m exp(i phi), m = sigmoid(-damping), it is

    D = conj(h_{t-1}) G,   dphi = Im(conj(a) D),   ddamping = -(1 - m) Re(conj(a) D),   db = G,   G <- conj(a) G + ...
"""

from typing import Any

import torch
from torch import Tensor

from orthobench.cells.base import Cell, State
from orthobench.cells.mingru import MinGRU
from orthobench.cells.rotation import Rotation
from orthobench.parametrizations.derivatives import first_only
from orthobench.scan.fused.elman import Gradients, first_gradient
from orthobench.scan.native.library import Struct, long, pointer, readable, room, with_rows
from orthobench.scan.native.projection import project
from orthobench.scan.reference import projected

KINDS = ("mingru", "mingru identity", "minlstm", "minlstm identity", "rotation", "unitary")


class GatedLinear(Struct):
    """The struct of the same name in gated_linear.c."""

    real = frozenset(("P", "dP"))
    apart = frozenset(("P", "dH"))
    _fields_ = (
        *((name, long) for name in ("T", "B", "N", "kind", "width", "P_time", "P_row", "dH_time", "dH_row")),
        *((name, pointer) for name in ("P", "h0", "H", "dH", "dP", "G")),
    )


def run(cell: Any, x: Tensor, state: State) -> tuple[Tensor, State]:
    """Run a `MinGRU`, `MinLSTM` or `Rotation` cell over x from `state`; see `reference.run`."""
    own = type(cell).project is not Cell.project
    p_TBM = projected(cell, x, ()) if own else project(x, cell.U, cell.joint_bias())
    _, B, width = p_TBM.shape
    N = cell.hidden_size
    if width != N * len(cell.gates):
        raise ValueError(f"projection of width {width} does not fit {N} units with {len(cell.gates)} gates.")
    h0 = state[0].to(p_TBM.dtype.to_complex() if cell.complex_state else p_TBM.dtype).expand(B, N)
    h_TBN = GatedScan.apply(p_TBM, h0.contiguous(), _kind(cell))
    return h_TBN.transpose(0, 1), (h_TBN[-1].clone(),)


def _kind(cell: Any) -> int:
    if isinstance(cell, Rotation):
        return KINDS.index("rotation" if "a" in cell.gates else "unitary")
    return 2 * (not isinstance(cell, MinGRU)) + (cell.candidate == "identity")


class GatedScan(torch.autograd.Function):
    """(p_TBM, h_0, kind) -> h_TBN; it saves p and h."""

    @staticmethod
    def forward(ctx: Any, p_TBM: Tensor, h0: Tensor, kind: int) -> Tensor:
        P, h0 = with_rows(p_TBM), h0.resolve_conj().resolve_neg()
        H, ctx.kind = room(h0.expand(len(P), *h0.shape)), kind
        _run("gated_linear_forward", kind, H, P, h0=h0)
        ctx.save_for_backward(P, H, h0)
        return H

    @staticmethod
    @first_only("use engine=reference")
    def backward(ctx: Any, dH: Tensor) -> Gradients:  # type: ignore[override]
        P, H, h0 = ctx.saved_tensors
        G, dP = first_gradient(H, dH, None), room(P)
        _run("gated_linear_backward", ctx.kind, H, P, h0=h0, dH=readable(dH), dP=dP, G=G)
        return dP, G, None


def _run(loop: str, kind: int, H: Tensor, P: Tensor, **tensors: Tensor | None) -> None:
    T, B, N = H.shape
    scan = GatedLinear(T, B, N, kind, P.shape[-1])
    scan.run(loop, B, H, 2 * N, H=H, P=P, **tensors)
