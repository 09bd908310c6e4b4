"""The Elman recurrence as one autograd Function.

    z_t = p_t + W h_{t-1},   h_t = act(z_t)

With G_t = dL/dh_t and g_t the part of it that comes from outside the recurrence, the reverse is, from t = T down to 1,

    dz_t = G_t act'(z_t),   G_{t-1} = g_{t-1} + W^T dz_t,   and then   dW = sum_t dz_t h_{t-1}^T

All elementwise work is done in the loop, while its block (B, N) is in cache; dW is one product after it.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from orthobench.cells.base import Cell, State
from orthobench.scan.pointwise import pointwise, room_for_signs

Gradients = tuple[Tensor | None, ...]


def run(cell: Any, x: Tensor, state: State) -> tuple[Tensor, State]:
    """Run an `Elman` cell over x from `state`; see `reference.run`."""
    (W,) = cell.matrices()
    b = cell.b["h"] if cell.activation == "modrelu" else None
    p_TBN = own_projection(cell, x, W.dtype)
    h0 = first_state(state, p_TBN, W)
    h_TBN, last = ElmanScan.apply(p_TBN, W, b, h0, cell.activation, cell.negative_slope)
    return h_TBN.transpose(0, 1), (last,)


class ElmanScan(torch.autograd.Function):
    """(p_TBN, W, b, h_0, activation, slope) -> (h_TBN, h_T); h takes p's place in memory.

    Saved are the hidden states only, and abs's signs in a byte each.
    """

    @staticmethod
    def forward(
        ctx: Any, p_TBN: Tensor, W: Tensor, b: Tensor | None, h0: Tensor, activation: Any, slope: float
    ) -> tuple[Tensor, Tensor]:
        H = p_TBN.data
        signs = room_for_signs(activation, H, any(ctx.needs_input_grad))
        act = pointwise(activation, b, slope).forward_
        h, scratch, W_t = h0, torch.empty_like(H[0]), W.T
        for p, s in zip(H.unbind(0), rows(signs, len(H)), strict=True):
            act(p.addmm_(h, W_t), scratch, s)
            h = p
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(H, h0, W, b, signs)
        ctx.activation, ctx.slope = activation, slope
        return H, h.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dH: Tensor | None, dlast: Tensor | None) -> Gradients:  # type: ignore[override]
        H, h0, W, b, signs = ctx.saved_tensors
        G, scratch, db = first_gradient(H, dH, dlast), torch.empty_like(H[0]), torch.zeros_like(H[0])
        act = pointwise(ctx.activation, b, ctx.slope, db).backward
        dZ = torch.empty_like(H)
        steps = zip([None, *rows(dH, len(H))[:-1]], H.unbind(0), dZ.unbind(0), rows(signs, len(H)), strict=True)
        for outside, h, dz, s in reversed(list(steps)):
            act(G, h, dz, scratch, s)
            if outside is None:
                torch.mm(dz, W, out=G)
            else:
                torch.addmm(outside, dz, W, out=G)
        return dZ, weight_gradient(dZ, H, h0), None if b is None else db.sum(0), G, None, None


def own_projection(cell: Cell, x: Tensor, dtype: torch.dtype) -> Tensor:
    """The cell's projection in memory that nobody else reads, so that hidden states may take its place."""
    p = cell.project(x).to(dtype)
    return p.contiguous() if type(cell).project is Cell.project else p.clone(memory_format=torch.contiguous_format)


def first_state(state: State, p: Tensor, W: Tensor) -> Tensor:
    """h_0 (B, N), of one row for the whole batch too."""
    return state[0].to(W.dtype).expand(p.shape[1], W.shape[0])


def weight_gradient(dZ: Tensor, H: Tensor, h0: Tensor) -> Tensor:
    """sum_t dz_t h_{t-1}^T for dZ (T, B, M) and H (T, B, N): one product over all steps, and one for the first."""
    dW = H.new_zeros(dZ.shape[-1], H.shape[-1]).addmm_(dZ[0].T, h0)  # in place: autocast leaves it alone
    return dW.addmm_(dZ[1:].flatten(0, 1).T, H[:-1].flatten(0, 1))


def rows(X: Tensor | None, T: int) -> list[Any]:
    """X's T blocks, or as many times nothing."""
    return [None] * T if X is None else list(X.unbind(0))


def first_gradient(H: Tensor, dH: Tensor | None, dlast: Tensor | None) -> Tensor:
    """G_T from the gradients of all hidden states and of the final one."""
    G = torch.zeros_like(H[0])
    if dH is not None:
        G += dH[-1]
    return G if dlast is None else G.add_(dlast)
