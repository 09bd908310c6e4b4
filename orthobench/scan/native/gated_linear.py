"""minGRU, minLSTM and Rotation in C; their files in cells have the equations.

With G_t = dL/dh_t, q the share that is given and k = 1 - q that which is kept, one step of the backward pass of a real
state is

    d ln(q / k) = (v - h_{t-1}) q k G,   dv = q G,   G <- k G + what comes from outside

For minGRU ln(q / k) is z's projection, for minLSTM ln sigmoid(i) - ln sigmoid(f). Of a complex state with the factor
a = m exp(i phi), m = sigmoid(-damping), it is

    D = conj(h_{t-1}) G,   dphi = Im(conj(a) D),   ddamping = -(1 - m) Re(conj(a) D),   db = G,   G <- conj(a) G + ...
"""

from ctypes import c_void_p
from typing import Any

import torch
from torch import Tensor

from orthobench.cells.base import Cell, State
from orthobench.cells.mingru import MinGRU
from orthobench.cells.rotation import Rotation
from orthobench.parametrizations.derivatives import first_only
from orthobench.scan.fused.elman import Gradients, first_gradient
from orthobench.scan.native.library import SMALLEST_SHARE, Struct, long, pack, pointer, readable, room, with_rows
from orthobench.scan.native.projection import source

KINDS = ("mingru", "mingru identity", "minlstm", "minlstm identity", "rotation", "unitary")


class GatedLinear(Struct):
    """The struct of the same name in gated_linear.c."""

    real = frozenset(("P", "dP", "X", "bias", "table", "dX", "dU", "dbias"))
    apart = frozenset(("P", "dP", "X", "dH", "tokens"))
    _fields_ = (
        *((name, long) for name in ("T", "B", "N", "kind", "width", "I", "unit")),
        *((f"{name}_{along}", long) for name in ("P", "X", "dP", "dH", "tokens") for along in ("time", "row")),
        *((name, pointer) for name in ("P", "dP", "tokens", "X", "bias", "table")),
        ("W", c_void_p * 2),
        *((name, pointer) for name in ("h0", "H", "dH", "G", "dX", "dU", "dbias")),
    )


def run(cell: Any, x: Tensor, state: State) -> tuple[Tensor, State]:
    """Run a `MinGRU`, `MinLSTM` or `Rotation` cell over x from `state`; see `reference.run`.

    Raises:
        ValueError: a projection or a bias that does not fit.
    """
    given, U, bias = source(cell, x, Cell, _units(len(x)))
    width, N = given.shape[-1] if U is None else len(U), cell.hidden_size
    if width != N * len(cell.gates):
        raise ValueError(f"projection of width {width} does not fit {N} units with {len(cell.gates)} gates.")
    dtype = cell.U.dtype.to_complex() if cell.complex_state else cell.U.dtype
    h0 = state[0].to(dtype).expand(len(x), N).contiguous()
    h_BTN = GatedScan.apply(given, U, bias, h0, _kind(cell))
    return h_BTN, ((h_BTN[:, -1] if x.shape[1] else h0).clone(),)


def _kind(cell: Any) -> int:
    if isinstance(cell, Rotation):
        return KINDS.index("rotation" if "a" in cell.gates else "unitary")
    return 2 * (not isinstance(cell, MinGRU)) + (cell.candidate == "identity")


class GatedScan(torch.autograd.Function):
    """(x, U, bias, h_0, kind) -> h (B, T, N), with x, U and bias as `source` gives them; it saves x and h."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, U: Tensor | None, bias: Tensor | None, h0: Tensor, kind: int) -> Tensor:
        x, h0 = x if x.dim() == 2 else with_rows(x), h0.resolve_conj().resolve_neg()
        bias = None if bias is None else bias.resolve_neg().contiguous()
        H, ctx.kind = room(h0[:, None].expand(-1, x.shape[1], -1)), kind
        _run("forward", kind, x, U, H, h0=h0, bias=bias)
        ctx.save_for_backward(x, U, bias, h0, H)
        return H

    @staticmethod
    @first_only("use engine=reference")
    def backward(ctx: Any, dH: Tensor) -> Gradients:  # type: ignore[override]
        x, U, bias, h0, H = ctx.saved_tensors
        outside, needed = readable(dH.transpose(0, 1)), ctx.needs_input_grad[0]
        G: Any = first_gradient(H.transpose(0, 1), outside, None) if x.shape[1] else torch.zeros_like(h0)
        units, dx = _units(len(x)), None
        if U is None:
            dx = room(x.transpose(0, 1)).transpose(0, 1)  # steps first, as what makes projections
        elif needed:
            dx = torch.empty(x.shape, dtype=x.dtype)
        dU = None if U is None else U.new_zeros(units, U.shape[1], len(U))
        dbias = None if bias is None else bias.new_zeros(units, len(bias))
        _run("backward", ctx.kind, x, U, H, dx, h0=h0, bias=bias, dH=outside, G=G, dU=dU, dbias=dbias)
        return dx, None if dU is None else dU.sum(0).T, None if dbias is None else dbias.sum(0), G, None


def _units(B: int) -> int:
    """Number of units of sequences; their sums are added one by one, so that bits do not depend on threads."""
    return -(-B // SMALLEST_SHARE)


def _run(
    way: str, kind: int, x: Tensor, U: Tensor | None, H: Tensor, dx: Tensor | None = None, **tensors: Tensor | None
) -> None:
    (B, T, N), width = H.shape, x.shape[-1] if U is None else len(U)
    scan = GatedLinear(T, B, N, kind, width, 0 if U is None else U.shape[1], SMALLEST_SHARE)
    if U is None:
        tensors |= {"P": x.transpose(0, 1), "dP": None if dx is None else dx.transpose(0, 1)}
    elif x.dim() == 2:
        tensors |= {"tokens": x.T, "table": U.T.contiguous()}
    else:
        weights = (pack(U.T), None if dx is None else pack(U))
        for i, packed in enumerate(weights):
            scan.W[i] = None if packed is None else packed.data_ptr()
        tensors |= {"X": x.transpose(0, 1), "dX": dx}
    scan.run(f"gated_linear_{way}", _units(B), H, scan.scratch("gated_linear", way, H.dtype.to_real()), H=H, **tensors)
