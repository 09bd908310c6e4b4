"""The Elman and the scalar-gated recurrence as one autograd Function.

    a_t = act(p_t + W h_{t-1}),   h_t = a_t + beta h_{t-1}

Let G_t = dL/dh_t, and g_t the part of it that comes from outside the recurrence. From t = T down to 1, the backward
pass computes

    dz_t = G_t act'(z_t),   G_{t-1} = g_{t-1} + beta G_t + W^T dz_t
    dW = sum_t dz_t h_{t-1}^T,   dbeta = sum_t <G_t, h_{t-1}>

beta is None for the plain cell; `arguments.py` moves the other gate out of the loop. All elementwise work is done in
the loop, while its block (B, N) is in cache; dW is one product after it.
"""

from typing import Any

import torch
from torch import Tensor

from orthobench.cells.base import State
from orthobench.parametrizations.derivatives import first_only
from orthobench.scan.arguments import elman, scaled
from orthobench.scan.fused.pointwise import pointwise, room_for_signs

Gradients = tuple[Tensor | None, ...]


def run(cell: Any, x: Tensor, state: State) -> tuple[Tensor, State]:
    """Run an `Elman` or `ScalarGated` cell over x from `state`; see `reference.run`."""
    arguments, outside = elman(cell, x, state)
    h_TBN, last = FusedElman.apply(*arguments, cell.activation, cell.negative_slope)
    return scaled(h_TBN.transpose(0, 1), last, outside)


class FusedElman(torch.autograd.Function):
    """(p_TBN, W, b, h_0, beta, activation, slope) -> (h_TBN, h_T); a takes p's place in memory.

    It saves the hidden states, a where it differs from them, and for abs the signs, one byte each.
    """

    @staticmethod
    def forward(
        ctx: Any,
        p_TBN: Tensor,
        W: Tensor,
        b: Tensor | None,
        h0: Tensor,
        beta: Tensor | None,
        activation: Any,
        slope: float,
    ) -> tuple[Tensor, Tensor]:
        A = p_TBN.data
        H = A if beta is None else torch.empty_like(A)
        signs = room_for_signs(activation, A, any(ctx.needs_input_grad))
        act = pointwise(activation, b, slope, like=A).forward_
        h, scratch, W_t = h0, torch.empty_like(A[0]), W.T
        for a, new, s in zip(A.unbind(0), H.unbind(0), rows(signs, len(A)), strict=True):
            act(a.addmm_(h, W_t), scratch, s)
            h = a if beta is None else torch.addcmul(a, h, beta, out=new)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(H, None if beta is None else A, h0, W, b, beta, signs)
        ctx.activation, ctx.slope = activation, slope
        return H, h.clone()

    @staticmethod
    @first_only("use engine=reference")
    def backward(ctx: Any, dH: Tensor | None, dlast: Tensor | None) -> Gradients:  # type: ignore[override]
        H, A, h0, W, b, beta, signs = ctx.saved_tensors
        G, (scratch, db, dbeta) = first_gradient(H, dH, dlast), (torch.zeros_like(H[0]) for _ in range(3))
        act = pointwise(ctx.activation, b, ctx.slope, db, like=H).backward
        dZ, previous = torch.empty_like(H), [h0, *H[:-1].unbind(0)]
        blocks = ((H if A is None else A).unbind(0), dZ.unbind(0), rows(signs, len(H)))
        steps = zip([None, *rows(dH, len(H))[:-1]], previous, *blocks, strict=True)
        for outside, h, a, dz, s in reversed(list(steps)):
            act(G, a, dz, scratch, s)
            if beta is not None:
                dbeta.addcmul_(G, h)
                outside = G.mul_(beta) if outside is None else torch.addcmul(outside, G, beta, out=G)
            if outside is None:
                torch.mm(dz, W, out=G)
            else:
                torch.addmm(outside, dz, W, out=G)
        sums = None if b is None else db.sum(0), None if beta is None else dbeta.sum()
        return dZ, weight_gradient(dZ, H, h0), sums[0], G, sums[1], None, None


def weight_gradient(dZ: Tensor, H: Tensor, h0: Tensor) -> Tensor:
    """sum_t dz_t h_{t-1}^T for dZ (T, B, M) and H (T, B, N): one product over all steps, and one for the first."""
    dW = H.new_zeros(dZ.shape[-1], H.shape[-1]).addmm_(dZ[0].T, h0)  # autocast does not change in-place products
    return dW.addmm_(dZ[1:].flatten(0, 1).T, H[:-1].flatten(0, 1))


def rows(X: Tensor | None, T: int) -> list[Any]:
    """The T blocks of X, or a list of T Nones where X is None."""
    return [None] * T if X is None else list(X.unbind(0))


def first_gradient(H: Tensor, dH: Tensor | None, dlast: Tensor | None) -> Tensor:
    """G_T from the gradients of all hidden states and of the final one."""
    G = torch.zeros_like(H[0])
    if dH is not None:
        G += dH[-1]
    return G if dlast is None else G.add_(dlast)
