"""Diagonal linear recurrences, h_t = a_t * h_{t-1} + b_t elementwise, real or complex, in C.

With G_t = dL/dh_t the backward pass is db_t = G_t, da_t = conj(h_{t-1}) G_t, and G_{t-1} is conj(a_t) G_t plus the
gradient that comes from outside.
"""

from typing import Any

import torch
from torch import Tensor

from orthobench.parametrizations.derivatives import first_only
from orthobench.scan.fused.elman import Gradients, first_gradient
from orthobench.scan.native.library import REALS, Struct, long, missing, pointer, readable, room, with_rows


class Diagonal(Struct):
    """The struct of the same name in diagonal.c."""

    apart = frozenset(("a", "b", "dH"))
    _fields_ = (
        *((name, long) for name in ("T", "B", "M", "complex", "a_time", "a_row", "b_time", "b_row")),
        *((name, long) for name in ("dH_time", "dH_row")),
        *((name, pointer) for name in ("a", "b", "h0", "H", "dH", "G", "da", "db")),
        ("summed", long),
    )


def why_not(*tensors: Tensor) -> str | None:
    """Why these tensors cannot be scanned in C; None when they can."""
    if any(tensor.device.type != "cpu" for tensor in tensors):
        return "it is for CPUs"
    real = tensors[0].dtype.to_real()
    return missing(real) if real in REALS else f"it has no loop for {tensors[0].dtype}"


def diagonal_scan(a: Tensor, b: Tensor, h0: Tensor) -> Tensor:
    """All states of h_t = a_t * h_{t-1} + b_t, (T, B, N).

    Args:
        a: (N,), (T, B, N), or any shape that broadcasts to it; real where b is real.
        b: (T, B, N), float32, float64, complex64 or complex128.
        h0: (B, N), or any shape that broadcasts to it.

    Raises:
        ValueError: other shapes or dtypes, tensors that are not on a CPU, or no compiler.
    """
    if b.dim() != 3 or not all(b.shape):
        raise ValueError(f"b has the shape {tuple(b.shape)}: it must be (T, B, N), none of them zero.")
    if any(tensor.is_complex() and not b.is_complex() for tensor in (a, h0)):
        raise ValueError(f"a is {a.dtype}, b {b.dtype} and h0 {h0.dtype}: a complex a or h0 needs a complex b.")
    if any(tensor.dtype.to_real() != b.dtype.to_real() for tensor in (a, h0)):
        raise ValueError(f"a is {a.dtype}, b {b.dtype} and h0 {h0.dtype}: they must have the same precision.")
    if problem := why_not(b, a, h0):
        raise ValueError(f"there is no compiled scan for these tensors: {problem}.")
    T, B, N = b.shape
    for name, tensor, shape in (("a", a, (T, B, N)), ("h0", h0, (B, N))):
        if tensor.dim() > len(shape) or any(
            size not in (1, full) for size, full in zip(reversed(tensor.shape), reversed(shape), strict=False)
        ):
            raise ValueError(f"{name} has the shape {tuple(tensor.shape)}, which does not broadcast to {shape}.")
    a = a.to(b.dtype).expand(*a.shape[:-1], N) if a.dim() else a.to(b.dtype).expand(N)
    return DiagonalScan.apply(a, b, h0.to(b.dtype).expand(B, N))


class DiagonalScan(torch.autograd.Function):
    """(a, b_TBN, h_0) -> h_TBN; it saves a and h."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, h0: Tensor) -> Tensor:
        a, b, h0 = with_rows(a), with_rows(b), h0.resolve_conj().resolve_neg().contiguous()
        H = room(b)
        _run("diagonal_forward", a, H, b=b, h0=h0)
        ctx.save_for_backward(a, H, h0)
        return H

    @staticmethod
    @first_only("use engine=reference")
    def backward(ctx: Any, dH: Tensor) -> Gradients:  # type: ignore[override]
        a, H, h0 = ctx.saved_tensors
        G, db = first_gradient(H, dH, None), room(H)
        summed = a.dim() < 3 or len(a) == 1
        da = torch.zeros_like(G) if summed else room(H)
        _run("diagonal_backward", a, H, h0=h0, dH=readable(dH), G=G, da=da, db=db, summed=summed)
        return da.sum_to_size(a.shape) if a.dim() < 3 else da.expand(len(a), *G.shape).sum_to_size(a.shape), db, G


def _run(loop: str, a: Tensor, H: Tensor, summed: bool = False, **tensors: Tensor | None) -> None:
    T, B, N = H.shape
    scan = Diagonal(T=T, B=B, M=2 * N if H.is_complex() else N, complex=H.is_complex(), summed=summed)
    scan.run(loop, B, H, 0, a=a.expand(T, B, N), H=H, **tensors)
