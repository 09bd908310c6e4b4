"""The projection of the inputs for all time steps at once, and sums of outer products over all of them."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

PIECES = 32  # of a long sum, which a GPU computes side by side: one product of thin matrices would keep few cores busy


def projection(x: Tensor, U: Tensor, bias: Tensor | None) -> Tensor:
    """U x_t + bias for all time steps, (T, B, M), from x as `Cell.project` takes it, U (M, I) and bias (M,)."""
    if x.is_floating_point() and not x.is_cuda:
        return F.linear(x.transpose(0, 1), U, bias)
    if x.is_floating_point():
        p_TBM = _Linear.apply(x.transpose(0, 1), U)
    else:
        tokens, table = x.T.long().clamp(max=U.shape[1]), F.pad(U.T, (0, 0, 0, 1))
        p_TBM = _Rows.apply(tokens, table) if x.is_cuda else F.embedding(tokens, table)
    return p_TBM if bias is None else p_TBM + bias


def outer(dz: Tensor, h: Tensor) -> Tensor:
    """sum_t dz_t h_t^T of each member, for dz (S, T, B, M) and h (S, T, B, N)."""
    T = dz.shape[1]
    whole = T // PIECES * PIECES if dz.is_cuda else 0
    total = dz[:, whole:].flatten(1, 2).mT @ h[:, whole:].flatten(1, 2)
    if whole:
        left, right = (part[:, :whole].unflatten(1, (PIECES, -1)).flatten(2, 3) for part in (dz, h))
        total = total + (left.mT @ right).sum(1)
    return total


class _Linear(torch.autograd.Function):
    """(x_TBI, U_MI) -> U x, whose gradient with respect to U is a sum in pieces."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, U: Tensor) -> Tensor:
        return F.linear(x, U)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, dp: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        x, U = ctx.saved_tensors
        dx = dp @ U if ctx.needs_input_grad[0] else None
        return dx, outer(dp[None], x[None])[0] if ctx.needs_input_grad[1] else None


class _Rows(torch.autograd.Function):
    """(tokens_TB, table_KM) -> the table's rows (T, B, M), whose gradient is a product in place of a sorted sum."""

    generate_vmap_rule = True

    @staticmethod
    def forward(tokens: Tensor, table: Tensor) -> Tensor:
        return F.embedding(tokens, table)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        tokens, table = inputs
        ctx.save_for_backward(tokens)
        ctx.rows = len(table)

    @staticmethod
    def backward(ctx: Any, dp: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        (tokens,) = ctx.saved_tensors
        one_hot = (tokens[..., None] == torch.arange(ctx.rows, device=tokens.device)).to(dp.dtype)
        return None, outer(one_hot[None], dp[None])[0]
