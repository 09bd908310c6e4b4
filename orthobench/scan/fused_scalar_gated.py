"""The scalar-gated recurrence as one autograd Function.

    z_t = p_t + W h_{t-1},   a_t = act(z_t),   h_t = alpha a_t + beta h_{t-1}

Reverse, with G_t = dL/dh_t and g_t the part of it from outside the recurrence:

    dz_t = alpha G_t act'(z_t),   G_{t-1} = g_{t-1} + beta G_t + W^T dz_t
    dW = sum_t dz_t h_{t-1}^T,   dalpha = sum_t <G_t, a_t>,   dbeta = sum_t <G_t, h_{t-1}>

alpha and beta are tensors of one element of the graph, whatever clips them; on a GPU reading them waits for it once.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from orthobench.cells.base import State
from orthobench.scan.fused_elman import Gradients, first_gradient, first_state, own_projection, rows, weight_gradient
from orthobench.scan.pointwise import pointwise, room_for_signs


def run(cell: Any, x: Tensor, state: State) -> tuple[Tensor, State]:
    """Run a `ScalarGated` cell over x from `state`; see `reference.run`."""
    (W, alpha, beta) = cell.matrices()
    b = cell.b["h"] if cell.activation == "modrelu" else None
    p_TBN = own_projection(cell, x, W.dtype)
    h0 = first_state(state, p_TBN, W)
    h_TBN, last = ScalarGatedScan.apply(p_TBN, W, b, h0, alpha, beta, cell.activation, cell.negative_slope)
    return h_TBN.transpose(0, 1), (last,)


class ScalarGatedScan(torch.autograd.Function):
    """(p_TBN, W, b, h_0, alpha, beta, activation, slope) -> (h_TBN, h_T); a takes p's place in memory.

    Saved are h and a, and abs's signs in a byte each.
    """

    @staticmethod
    def forward(
        ctx: Any,
        p_TBN: Tensor,
        W: Tensor,
        b: Tensor | None,
        h0: Tensor,
        alpha: Tensor,
        beta: Tensor,
        activation: Any,
        slope: float,
    ) -> tuple[Tensor, Tensor]:
        A = p_TBN.data
        H, gates = torch.empty_like(A), (alpha.item(), beta.item())
        signs = room_for_signs(activation, A, any(ctx.needs_input_grad))
        act = pointwise(activation, b, slope).forward_
        h, scratch, W_t = h0, torch.empty_like(A[0]), W.T
        for p, new, s in zip(A.unbind(0), H.unbind(0), rows(signs, len(A)), strict=True):
            act(p.addmm_(h, W_t), scratch, s)
            h = torch.mul(h, gates[1], out=new).add_(p, alpha=gates[0])
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(H, A, h0, W, b, signs, alpha, beta)
        ctx.activation, ctx.slope, ctx.gates = activation, slope, gates
        return H, h.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dH: Tensor | None, dlast: Tensor | None) -> Gradients:  # type: ignore[override]
        H, A, h0, W, b, signs, alpha, beta = ctx.saved_tensors
        T, gates = len(H), ctx.gates
        G, da, scratch, db = first_gradient(H, dH, dlast), *(torch.zeros_like(H[0]) for _ in range(3))
        act = pointwise(ctx.activation, b, ctx.slope, db).backward
        dZ, sums = torch.empty_like(H), H.new_empty(2, T)
        flat_G, flat_A = G.view(-1), A.view(T, -1)
        flat_H = [h0.reshape(-1), *H[:-1].view(T - 1, G.numel()).unbind(0)]
        steps = zip(
            [None, *rows(dH, T)[:-1]], flat_H, *(rows(X, T) for X in (flat_A, A, dZ, *sums, signs)), strict=True
        )
        for outside, flat_h, flat_a, a, dz, dalpha, dbeta, s in reversed(list(steps)):
            torch.dot(flat_G, flat_a, out=dalpha)
            torch.dot(flat_G, flat_h, out=dbeta)
            act(torch.mul(G, gates[0], out=da), a, dz, scratch, s)
            G.addmm_(dz, W, beta=gates[1])
            if outside is not None:
                G.add_(outside)
        dW, db = weight_gradient(dZ, H, h0), None if b is None else db.sum(0)
        dalpha, dbeta = sums.sum(1)
        return dZ, dW, db, G, dalpha.view_as(alpha), dbeta.view_as(beta), None, None
