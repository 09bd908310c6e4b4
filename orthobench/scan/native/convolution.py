"""A causal convolution over time, channel by channel, with SiLU behind it, in C.

    z_t = b + sum over k of c_k * x_(t - K + 1 + k),   y_t = z_t sigmoid(z_t)

With s = sigmoid(z_t) the backward pass is dz_t = dy_t s (1 + z_t (1 - s)), dc_k = sum of dz_t * x, db that of dz_t, and
every x gets c_k * dz_t; z is computed anew.
"""

from typing import Any

import torch
from torch import Tensor

from orthobench.parametrizations.derivatives import first_only
from orthobench.scan.fused.elman import Gradients
from orthobench.scan.native.library import Struct, long, pointer, with_rows

POINTERS = ("X", "before", "kernel", "Y", "dY", "dX", "dbefore", "dkernel", "shift", "dshift")


class Convolution(Struct):
    """The struct of the same name in convolution.c."""

    apart = frozenset(("X", "dX"))
    _fields_ = (
        *((name, long) for name in ("T", "B", "M", "K", "X_row", "X_time", "dX_row", "dX_time")),
        *((name, pointer) for name in POINTERS),
    )


def convolve(x: Tensor, before: Tensor, kernel: Tensor, shift: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The outputs (B, T, M), and the last inputs, which are `before` for the steps that follow.

    Args:
        x: (B, T, M).
        before: the inputs before the first, (B, K - 1, M).
        kernel: (K, M), the factor of the current step last.
        shift: (M,), added before SiLU, or None.

    Raises:
        ValueError: shapes, dtypes or devices that do not fit each other.
    """
    (B, T, M), K = x.shape, kernel.shape[0]
    if before.shape != (B, K - 1, M) or kernel.shape != (K, M):
        raise ValueError(
            f"inputs {tuple(x.shape)}, {tuple(before.shape)} before them and a kernel {tuple(kernel.shape)} do not fit."
        )
    if shift is not None and shift.shape != (M,):
        raise ValueError(f"inputs {tuple(x.shape)} and a shift {tuple(shift.shape)} do not fit.")
    given = [before, kernel, *(() if shift is None else (shift,))]
    if any(tensor.dtype != x.dtype or tensor.device != x.device for tensor in given):
        types = f"inputs {x.dtype}, {before.dtype} before them and a kernel {kernel.dtype}"
        raise ValueError(f"{types}{'' if shift is None else f' with a shift {shift.dtype}'} do not fit.")
    latest = torch.cat([before, x[:, max(T - K + 1, 0) :]], dim=1)
    return CausalConvolution.apply(x, before, kernel, shift), latest[:, latest.shape[1] - K + 1 :]


class CausalConvolution(torch.autograd.Function):
    """(x_BTM, before, kernel, shift or None) -> y_BTM; it saves its arguments alone."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, before: Tensor, kernel: Tensor, shift: Tensor | None) -> Tensor:
        x, before, kernel = with_rows(x), before.contiguous(), kernel.contiguous()
        shift = None if shift is None else shift.contiguous()
        y = x.new_empty(x.shape)
        _run("forward", x, kernel, before=before, Y=y, shift=shift)
        ctx.save_for_backward(x, before, kernel, shift)
        return y

    @staticmethod
    @first_only("use engine=reference")
    def backward(ctx: Any, dy: Tensor) -> Gradients:  # type: ignore[override]
        x, before, kernel, shift = ctx.saved_tensors
        dx, dbefore, dkernel = x.new_empty(x.shape), torch.zeros_like(before), x.new_zeros(len(x), *kernel.shape)
        parts = {"dY": dy.contiguous(), "dX": dx.transpose(0, 1), "dbefore": dbefore, "dkernel": dkernel}
        dshift = None if shift is None else x.new_zeros(len(x), len(shift))
        _run("backward", x, kernel, 2 * x.shape[-1], before=before, shift=shift, dshift=dshift, **parts)
        return dx, dbefore, dkernel.sum(0), None if dshift is None else dshift.sum(0)


def _run(loop: str, x: Tensor, kernel: Tensor, scratch: int = 0, **tensors: Tensor | None) -> None:
    B, T, M = x.shape
    given = Convolution(T, B, M, len(kernel))
    given.run(f"convolution_{loop}", B, x, scratch, X=x.transpose(0, 1), kernel=kernel, **tensors)
