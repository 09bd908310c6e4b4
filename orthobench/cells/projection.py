"""Products with one matrix for all time steps at once, and sums of outer products over all of them.

On a GPU they take what memory traffic allows. Members of an ensemble are an axis S of their tensors, so that nothing
is copied for a product of many matrices.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from orthobench.cells.members import Members

PIECES = 32  # of a long sum, which a GPU computes side by side: one product of thin matrices would keep few cores busy
FEW_ROWS = 128  # of a table whose gradient is a product on a GPU; for one of more rows torch sorts the tokens
NARROW = 32  # inputs, to which a constant is added in place of a bias to all that is made of them


def projection(x: Tensor, U: Tensor, bias: Tensor | None) -> Tensor:
    """U x_t + bias for all time steps, (T, B, M), from x as `Cell.project` takes it, U (M, I) and bias (M,)."""
    if x.is_floating_point():
        x = x.transpose(0, 1)
        if not x.is_cuda:
            return F.linear(x, U, bias)
        if bias is not None and x.shape[-1] <= NARROW:
            x, U, bias = torch.cat([x, torch.ones_like(x[..., :1])], -1), torch.cat([U, bias[:, None]], 1), None
        return linear(x, U, bias)
    tokens, table = x.T.long().clamp(max=U.shape[1]), F.pad(U.T, (0, 0, 0, 1))
    few = len(table) <= FEW_ROWS
    if bias is not None and (few or x.is_cuda):
        table, bias = table + bias, None  # few rows in place of T B, and the same bits
    if few and x.is_cuda:
        return _Rows.apply(tokens[None], table[None])[0].squeeze(0)
    p_TBM = F.embedding(tokens, table)
    return p_TBM if bias is None else p_TBM + bias


def linear(x: Tensor, U: Tensor, bias: Tensor | None) -> Tensor:
    """U x + bias on a GPU, (T, B, M), for x (T, B, I); the bias may be None."""
    return _Linear.apply(x[None], U[None], None if bias is None else bias[None])[0].squeeze(0)


def outer(dz: Tensor, h: Tensor) -> Tensor:
    """sum_t dz_t h_t^T of each member, for dz (S, T, B, M) and h (S, T, B, N)."""
    if not dz.is_cuda:
        return dz.flatten(1, 2).mT @ h.flatten(1, 2)
    return torch.stack([_in_pieces(*one) for one in zip(dz, h, strict=True)])  # one product of all would copy them


def _in_pieces(dz: Tensor, h: Tensor) -> Tensor:
    """sum_t dz_t h_t^T for dz (T, B, M) and h (T, B, N)."""
    whole = len(dz) // PIECES * PIECES
    total = dz[whole:].flatten(0, 1).mT @ h[whole:].flatten(0, 1)
    if whole:
        left, right = (part[:whole].unflatten(0, (PIECES, -1)).flatten(1, 2) for part in (dz, h))
        total = total + (left.mT @ right).sum(0)
    return total


class _Linear(Members, torch.autograd.Function):
    """(x_STBI, U_SMI, bias_SM or None) -> (U x + bias,); the gradient with respect to U is a sum in pieces."""

    @staticmethod
    def forward(x: Tensor, U: Tensor, bias: Tensor | None) -> tuple[Tensor]:
        if len(x) == 1:
            return (F.linear(x[0], U[0], None if bias is None else bias[0])[None],)
        rows = x.flatten(1, 2)
        y = rows @ U.mT if bias is None else torch.baddbmm(bias[:, None], rows, U.mT)
        return (y.view(*x.shape[:3], U.shape[1]),)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor]) -> None:
        ctx.save_for_backward(*inputs[:2])

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        (x, U), (of_x, of_U, of_bias) = ctx.saved_tensors, ctx.needs_input_grad
        dy = dy.to(U.dtype)  # under autocast the product was rounded, and so is its gradient
        dx = (dy.flatten(1, 2) @ U).view(x.shape) if of_x else None
        return dx, outer(dy, x.to(U.dtype)) if of_U else None, dy.sum((1, 2)) if of_bias else None


class _Rows(Members, torch.autograd.Function):
    """(tokens_STB, table_SKM) -> (rows_STBM,), the tables' rows; their gradient is a product, not a sorted sum."""

    @staticmethod
    def forward(tokens: Tensor, table: Tensor) -> tuple[Tensor]:
        if len(table) > 1:
            tokens = tokens + table.shape[1] * torch.arange(len(table), device=table.device)[:, None, None]
        return (F.embedding(tokens, table.flatten(0, 1)),)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor]) -> None:
        tokens, table = inputs
        ctx.save_for_backward(tokens)
        ctx.rows = table.shape[1]

    @staticmethod
    def backward(ctx: Any, dp: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        (tokens,) = ctx.saved_tensors
        one_hot = (tokens[..., None] == torch.arange(ctx.rows, device=tokens.device)).to(dp.dtype)
        return None, outer(one_hot, dp)
