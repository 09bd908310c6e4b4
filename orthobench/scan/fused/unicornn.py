"""Independent oscillators as one autograd Function; cells/unicornn.py has the equations.

With f = tanh(w y_{t-1} + p_t), v = dt s, G = dL/dy_t and S the part of dL/dz_t that comes from step t + 1, one step of
the backward pass is

    S <- S + v G,   dp = -S v (1 - f^2),   dw <- dw + dp y_{t-1},   dv <- dv + G z_t - S (f + alpha y_{t-1})
    G <- G + w dp - alpha v S + what comes from outside
"""

from typing import Any

import torch
from torch import Tensor

from orthobench.cells.base import State
from orthobench.parametrizations.derivatives import first_only
from orthobench.scan.arguments import own_projection
from orthobench.scan.fused.elman import Gradients, first_gradient, rows


def run(cell: Any, x: Tensor, state: State) -> tuple[Tensor, State]:
    """Run a `UnICORNN` cell over x from `state`; see `reference.run`."""
    w, pace = cell.matrices()
    p = own_projection(cell, x, w.dtype)
    first = (s.to(p.dtype).expand(p.shape[1:]) for s in state)
    y_TBN, *last = FusedUnICORNN.apply(p, w, pace, *first, cell.alpha)
    return y_TBN.transpose(0, 1), tuple(last)


class FusedUnICORNN(torch.autograd.Function):
    """(p_TBN, w, v, y_0, z_0, alpha) -> (y_TBN, y_T, z_T); f overwrites p."""

    @staticmethod
    def forward(
        ctx: Any, p_TBN: Tensor, w: Tensor, v: Tensor, y0: Tensor, z0: Tensor, alpha: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        F = p_TBN.data
        Y, Z = torch.empty_like(F), torch.empty_like(F)
        y, z, force = y0, z0, torch.empty_like(F[0])
        for f, new_y, new_z in zip(F.unbind(0), Y.unbind(0), Z.unbind(0), strict=True):
            f.addcmul_(y, w).tanh_()
            torch.add(f, y, alpha=alpha, out=force)
            z = torch.addcmul(z, force, v, value=-1, out=new_z)
            y = torch.addcmul(y, z, v, out=new_y)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(Y, Z, F, y0, w, v)
        ctx.alpha = alpha
        return Y, y.clone(), z.clone()

    @staticmethod
    @first_only("use engine=reference")
    def backward(ctx: Any, dY: Tensor | None, dy: Tensor | None, dz: Tensor | None) -> Gradients:  # type: ignore[override]
        (Y, Z, F, y0, w, v), alpha = ctx.saved_tensors, ctx.alpha
        dP, scratch, dw, dv = torch.empty_like(F), *(torch.zeros_like(F[0]) for _ in range(3))
        G, S, stiffness = first_gradient(Y, dY, dy), first_gradient(Z, None, dz), alpha * v
        blocks = ([y0, *Y[:-1].unbind(0)], Z.unbind(0), F.unbind(0), dP.unbind(0))
        steps = zip([None, *rows(dY, len(F))[:-1]], *blocks, strict=True)
        for outside, y, z, f, dp in reversed(list(steps)):
            S.addcmul_(G, v)
            torch.mul(f, f, out=scratch).sub_(1)
            torch.mul(S, v, out=dp).mul_(scratch)
            dw.addcmul_(dp, y)
            torch.add(f, y, alpha=alpha, out=scratch)
            dv.addcmul_(G, z).addcmul_(S, scratch, value=-1)
            G.addcmul_(dp, w).addcmul_(S, stiffness, value=-1)
            if outside is not None:
                G += outside
        return dP, dw.sum(0), dv.sum(0), G, S, None
