"""The gated recurrent unit as one autograd Function; cells/gru.py has the equations.

With k = W_c h_{t-1} + b_k, and z_c = p_c + r k (reset after), p_c + W_c (r h_{t-1}) (before) or p_c + k (none), the
gradient G = dL/dh_t goes back through one step as

    dz_c = G (1 - u) act'(z_c),   dz_u = G (h_{t-1} - c) u (1 - u),   dz_r = dr r (1 - r)
    after:    dk = r dz_c,   dr = k dz_c,          dh_{t-1} = u G + W_r^T dz_r + W_u^T dz_u + W_c^T dk
    before:   s = W_c^T dz_c,   dr = h_{t-1} s,    dh_{t-1} = u G + W_r^T dz_r + W_u^T dz_u + r s
    none:     dk = dz_c,                           dh_{t-1} = u G + W_u^T dz_u + W_c^T dk

Every gate has a contiguous buffer (T, B, N) of its own, because slices of one buffer of width 3N would be slower. The
gradient of each weight is one product after the loop.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from orthobench.cells.base import State
from orthobench.parametrizations.derivatives import first_only
from orthobench.scan.arguments import first_state
from orthobench.scan.fused.elman import Gradients, first_gradient, rows, weight_gradient
from orthobench.scan.fused.pointwise import pointwise, room_for_signs

sigmoid_backward = torch.ops.aten.sigmoid_backward.grad_input


class GRUSettings(NamedTuple):
    """The arguments that are not tensors: the candidate's activation and where the reset acts."""

    activation: Any
    slope: float
    reset: str


def run(cell: Any, x: Tensor, state: State) -> tuple[Tensor, State]:
    """Run a `GRU` cell over x from `state`; see `reference.run`."""
    W = cell.matrices()
    absent = (None,) * (3 - len(W))
    p = cell.project(x).to(W[0].dtype).chunk(len(W), dim=-1)
    b = cell.b["c"] if "c" in cell.inside else None
    b_k = cell.b_hidden["c"] if "c" in cell.late and "c" in cell.b_hidden else None
    settings = GRUSettings(cell.activation, cell.negative_slope, cell.reset)
    h_TBN, last = FusedGRU.apply(*absent, *p, *absent, *W, b, b_k, first_state(state, p[0], W[0]), settings)
    return h_TBN.transpose(0, 1), (last,)


class FusedGRU(torch.autograd.Function):
    """(p_r, p_u, p_c, W_r, W_u, W_c, b, b_k, h_0, settings) -> (h_TBN, h_T); p_r and W_r are None without a reset.

    It saves h, r, u and c, and k where the reset comes after the product.
    """

    @staticmethod
    def forward(
        ctx: Any,
        p_r: Tensor | None,
        p_u: Tensor,
        p_c: Tensor,
        W_r: Any,
        W_u: Tensor,
        W_c: Tensor,
        b: Tensor | None,
        b_k: Tensor | None,
        h0: Tensor,
        settings: GRUSettings,
    ) -> tuple[Tensor, Tensor]:
        H, U, C = (torch.empty_like(p_c, memory_format=torch.contiguous_format) for _ in range(3))
        R = None if p_r is None else torch.empty_like(C)
        K = torch.empty_like(C) if settings.reset == "after" else None
        signs = room_for_signs(settings.activation, C, any(ctx.needs_input_grad))
        act = pointwise(settings.activation, b, settings.slope, like=C).forward_
        h, scratch = h0, torch.empty_like(C[0])
        after, before, gated = settings.reset == "after", settings.reset == "before", W_r is not None
        blocks = (rows(X, len(H)) for X in (p_r, p_u, p_c, R, U, C, K, H, signs))
        for pr, pu, pc, r, u, c, k, new, s in zip(*blocks, strict=True):
            torch.addmm(pu, h, W_u.T, out=u).sigmoid_()
            if gated:
                torch.addmm(pr, h, W_r.T, out=r).sigmoid_()
            if after:
                torch.mm(h, W_c.T, out=k) if b_k is None else torch.addmm(b_k, h, W_c.T, out=k)
                torch.addcmul(pc, r, k, out=c)
            else:
                torch.addmm(pc, torch.mul(r, h, out=scratch) if before else h, W_c.T, out=c)
            act(c, scratch, s)
            h = torch.lerp(c, h, u, out=new)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(H, R, U, C, K, signs, h0, W_r, W_u, W_c, b, b_k)
        ctx.settings = settings
        return H, h.clone()

    @staticmethod
    @first_only("use engine=reference")
    def backward(ctx: Any, dH: Tensor | None, dlast: Tensor | None) -> Gradients:  # type: ignore[override]
        H, R, U, C, K, signs, h0, W_r, W_u, W_c, b, b_k = ctx.saved_tensors
        T, (name, slope, reset) = len(H), ctx.settings
        G, db = first_gradient(H, dH, dlast), torch.zeros_like(H[0])
        act = pointwise(name, b, slope, db, like=H).backward
        old, scratch = torch.empty_like(G), torch.empty_like(G)
        dZu, dZc = torch.empty_like(H), torch.empty_like(H)
        dZr = None if R is None else torch.empty_like(H)
        X = dZc if R is None else torch.empty_like(H)  # dk, or r h_{t-1}: the other factor of dW_c
        previous = [h0, *H[:-1].unbind(0)]
        outsides = [None, *rows(dH, T)[:-1]]
        blocks = (rows(Y, T) for Y in (R, U, C, K, dZr, dZu, dZc, X, signs))
        steps = list(zip(outsides, previous, *blocks, strict=True))
        for outside, h, r, u, c, k, dzr, dzu, dzc, x, s in reversed(steps):
            torch.mul(G, u, out=old) if outside is None else torch.addcmul(outside, G, u, out=old)
            sigmoid_backward(torch.sub(h, c, out=scratch).mul_(G), u, grad_input=dzu)
            act(G.addcmul_(G, u, value=-1), c, dzc, scratch, s)
            if reset == "before":
                torch.mul(r, h, out=x)
                torch.mm(dzc, W_c, out=scratch)
                old.addcmul_(r, scratch)
                scratch.mul_(h)
            else:
                old.addmm_(dzc if r is None else torch.mul(r, dzc, out=x), W_c)
                if r is not None:
                    torch.mul(k, dzc, out=scratch)
            if r is not None:
                old.addmm_(sigmoid_backward(scratch, r, grad_input=dzr), W_r)
            old.addmm_(dzu, W_u)
            G, old = old, G
        dW_r = None if dZr is None else weight_gradient(dZr, H, h0)
        if reset == "before":
            dW_c = torch.zeros_like(W_c).addmm_(dZc.flatten(0, 1).T, X.flatten(0, 1))
        else:
            dW_c = weight_gradient(X, H, h0)
        biases = None if b is None else db.sum(0), None if b_k is None else X.sum((0, 1))
        return dZr, dZu, dZc, dW_r, weight_gradient(dZu, H, h0), dW_c, *biases, G, None
