"""Long expressive memory as one autograd Function; cells/lem.py has the equations.

With c and d the two candidates, G = dL/dy_t and S the part of dL/dz_t that comes from step t + 1, one step of the
backward pass is

    dp_y = G a (1 - d^2),              S <- S + W_y^T dp_y
    dp_z = S b (1 - c^2),              dp_b = S (c - z_{t-1}) b (1 - b / dt),   dp_a = G (d - y_{t-1}) a (1 - a / dt)
    S <- S (1 - b),                    G <- G (1 - a) + W^T (dp_a, dp_b, dp_z) + what comes from outside
"""

from typing import Any

import torch
from torch import Tensor

from orthobench.cells.base import State
from orthobench.parametrizations.derivatives import first_only
from orthobench.scan.arguments import own_projection
from orthobench.scan.fused.elman import Gradients, first_gradient, rows, weight_gradient


def run(cell: Any, x: Tensor, state: State) -> tuple[Tensor, State]:
    """Run a `LEM` cell over x from `state`; see `reference.run`."""
    W = cell.matrices()
    p = own_projection(cell, x, W[0].dtype)
    y0, z0 = (s.to(p.dtype).expand(p.shape[1], cell.hidden_size) for s in state)
    y_TBN, *last = FusedLEM.apply(p, *W, y0, z0, cell.dt)
    return y_TBN.transpose(0, 1), tuple(last)


class FusedLEM(torch.autograd.Function):
    """(p_TBM, W, W_y, y_0, z_0, dt) -> (y_TBN, y_T, z_T), M = 4N; a, b, c and d overwrite p."""

    @staticmethod
    def forward(
        ctx: Any, p_TBM: Tensor, W: Tensor, W_y: Tensor, y0: Tensor, z0: Tensor, dt: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        p, N = p_TBM.data, y0.shape[-1]
        Y, Z = (p.new_empty(*p.shape[:2], N) for _ in range(2))
        y, z, W_t, W_y_t = y0, z0, W.T, W_y.T
        for p_t, new_y, new_z in zip(p.unbind(0), Y.unbind(0), Z.unbind(0), strict=True):
            first, d = p_t[:, : 3 * N], p_t[:, 3 * N :]
            first.addmm_(y, W_t)
            first[:, : 2 * N].sigmoid_().mul_(dt)
            a, b, c = first[:, :N], first[:, N : 2 * N], first[:, 2 * N :].tanh_()
            z = torch.lerp(z, c, b, out=new_z)
            d.addmm_(z, W_y_t).tanh_()
            y = torch.lerp(y, d, a, out=new_y)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(Y, Z, p, y0, z0, W, W_y)
        ctx.dt = dt
        return Y, y.clone(), z.clone()

    @staticmethod
    @first_only("use engine=reference")
    def backward(ctx: Any, dY: Tensor | None, dy: Tensor | None, dz: Tensor | None) -> Gradients:  # type: ignore[override]
        Y, Z, p, y0, z0, W, W_y = ctx.saved_tensors
        N, dP = y0.shape[-1], torch.empty_like(p)
        G, S = first_gradient(Y, dY, dy), first_gradient(Z, None, dz)
        before = zip([y0, *Y[:-1].unbind(0)], [z0, *Z[:-1].unbind(0)], strict=True)
        steps = zip([None, *rows(dY, len(Y))[:-1]], before, p.unbind(0), dP.unbind(0), strict=True)
        for outside, (y, z), p_t, dp in reversed(list(steps)):
            a, b, c, d = p_t.split(N, dim=-1)
            dp_a, dp_b, dp_z, dp_y = dp.split(N, dim=-1)
            torch.mul(G, a, out=dp_y).addcmul_(dp_y * d, d, value=-1)
            S.addmm_(dp_y, W_y)
            torch.mul(S, b, out=dp_z)
            torch.sub(c, z, out=dp_b).mul_(dp_z)
            torch.sub(d, y, out=dp_a).mul_(G).mul_(a)
            S.sub_(dp_z)
            dp_z.addcmul_(dp_z * c, c, value=-1)
            steps_of_time = dp[:, : 2 * N]
            steps_of_time.addcmul_(steps_of_time, p_t[:, : 2 * N], value=-1 / ctx.dt)
            G.addcmul_(G, a, value=-1).addmm_(dp[:, : 3 * N], W)
            if outside is not None:
                G += outside
        dW_y = torch.mm(dP[..., 3 * N :].flatten(0, 1).T, Z.flatten(0, 1))
        return dP, weight_gradient(dP[..., : 3 * N], Y, y0), dW_y, G, S, None
