"""The projection of the input, U x_t + bias: in memory that the loops may overwrite, or made by the loops."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from orthobench.cells.base import Cell, projection
from orthobench.parametrizations.derivatives import first_only
from orthobench.scan import arguments
from orthobench.scan.fused.elman import Gradients
from orthobench.scan.native.library import add_outer, long_product, room
from orthobench.scan.reference import projected

SMALLER = 4  # times: all sums for the columns of U beside the projection of all tokens; measured with one sequence


def own_projection(cell: Cell, x: Tensor, dtype: torch.dtype) -> Tensor:
    """The cell's projection (T, B, M) in memory of its own, by the product in C where it is the usual one."""
    return arguments.own_projection(cell, x, dtype, project)


def project(x: Tensor, U: Tensor, bias: Tensor | None) -> Tensor:
    """The same as `cells.base.projection`, (T, B, M), but the result may be overwritten."""
    if not multiplied(x, U) or U.shape[1] == 1:  # where torch is faster
        return projection(x, U, bias).to(U.dtype).contiguous()
    return Projection.apply(x.transpose(0, 1), U, bias)


def multiplied(x: Tensor, U: Tensor) -> bool:
    """Return True if inputs are multiplied as they are: no tokens, nor inputs that autocast rounds."""
    return x.dtype == U.dtype and not torch.is_autocast_enabled("cpu")


def source(cell: Any, x: Tensor, own: type, units: int) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Inputs of loops that project by themselves, the matrix U (M, I) and a bias (M), or None.

    The inputs are x (B, T, I); or tokens (B, T), the places of columns of U, to which the bias is added already; or,
    where U is None, the projection itself, (B, T, M).

    Args:
        cell: the cell.
        x: inputs (B, T, I), or tokens (B, T).
        own: the class whose method `project` is U x + `joint_bias` and no more.
        units: the sums that dL/dU is made of. With tokens they are to be small beside the projection.

    Raises:
        ValueError: U, a bias or x that do not fit, before C would misread them.
    """
    if type(cell).project is own.project:
        U, bias = cell.U, cell.joint_bias()
        if bias is not None and bias.shape != U.shape[:1]:
            raise ValueError(f"bias {tuple(bias.shape)} does not fit: {(len(U),)} is needed.")
        if multiplied(x, U):
            if x.shape[-1] != U.shape[1]:
                raise ValueError(f"U {tuple(U.shape)} does not fit: {(len(U), x.shape[-1])} is needed.")
            return x, U, bias
        few = x.numel() > 0 and SMALLER * units * (U.shape[1] + 1) <= x.numel()
        if not x.is_floating_point() and few and x.min() >= 0:
            V = F.pad(U, (0, 1))  # a token beyond U is a column of zeros
            return x.long().clamp(max=U.shape[1]), V if bias is None else V + bias.to(U.dtype)[:, None], None
    return projected(cell, x, ()).transpose(0, 1), None, None


class Projection(torch.autograd.Function):
    """(x_TBI, U, bias) -> p_TBM."""

    @staticmethod
    def forward(ctx: Any, x_TBI: Tensor, U: Tensor, bias: Tensor | None) -> Tensor:
        x_TBI = x_TBI.contiguous()
        p = room(x_TBI, len(U))
        long_product(x_TBI.flatten(0, 1), U.T, bias, p.flatten(0, 1))
        ctx.save_for_backward(x_TBI, U)
        return p

    @staticmethod
    @first_only("use engine=reference")
    def backward(ctx: Any, dP: Tensor) -> Gradients:  # type: ignore[override]
        x_TBI, U = ctx.saved_tensors
        dP, (M, N), biased = dP.contiguous(), U.shape, ctx.needs_input_grad[2]
        seen = torch.cat((x_TBI, x_TBI.new_ones(*x_TBI.shape[:2], 1)), -1) if biased else x_TBI  # the bias reads ones
        dU_t = U.new_zeros(N + biased, M)
        add_outer(seen, dP, dU_t)  # vector registers run along the wider of the two
        dx = torch.empty_like(x_TBI) if ctx.needs_input_grad[0] else None
        if dx is not None:
            long_product(dP.flatten(0, 1), U, None, dx.flatten(0, 1))
        return dx, dU_t[:N].T, dU_t[N] if biased else None
