"""Coupled oscillators as one autograd Function; cells/cornn.py has the equations.

With f the force, G = dL/dy_t and S the part of dL/dz_t that comes from step t + 1, one step of the backward pass is

    S <- S + dt G,   dp = dt S (1 - f^2)
    (G, S) <- (G - dt gamma S, (1 - dt epsilon) S) + (W, V)^T dp + what comes from outside
"""

from typing import Any

import torch
from torch import Tensor

from orthobench.cells.base import State
from orthobench.parametrizations.derivatives import first_only
from orthobench.scan.arguments import own_projection
from orthobench.scan.fused.elman import Gradients, rows, weight_gradient


def run(cell: Any, x: Tensor, state: State) -> tuple[Tensor, State]:
    """Run a `CoRNN` cell over x from `state`; see `reference.run`."""
    (W,) = cell.matrices()
    p, N = own_projection(cell, x, W.dtype), cell.hidden_size
    first = torch.cat([s.to(W.dtype).expand(p.shape[1], N) for s in state], dim=1)
    states, last = FusedCoRNN.apply(p, W, first, cell.dt, cell.gamma, cell.epsilon)
    return states[..., :N].transpose(0, 1), last.split(N, dim=1)


class FusedCoRNN(torch.autograd.Function):
    """(p_TBN, (W, V), (y, z)_0, dt, gamma, epsilon) -> ((y, z)_TBM, (y, z)_T), M = 2N; the force overwrites p."""

    @staticmethod
    def forward(
        ctx: Any, p_TBN: Tensor, W: Tensor, first: Tensor, dt: float, gamma: float, epsilon: float
    ) -> tuple[Tensor, Tensor]:
        F, N = p_TBN.data, len(W)
        states, W_t, s = F.new_empty(*F.shape[:2], 2 * N), W.T, first
        for f, new in zip(F.unbind(0), states.unbind(0), strict=True):
            f.addmm_(s, W_t).tanh_()
            y, z = new[:, :N], new[:, N:]
            torch.mul(s[:, N:], 1 - dt * epsilon, out=z)
            z.add_(f, alpha=dt).add_(s[:, :N], alpha=-dt * gamma)
            torch.add(s[:, :N], z, alpha=dt, out=y)
            s = new
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(states, F, first, W)
        ctx.settings = dt, gamma, epsilon
        return states, s.clone()

    @staticmethod
    @first_only("use engine=reference")
    def backward(ctx: Any, d_states: Tensor | None, d_last: Tensor | None) -> Gradients:  # type: ignore[override]
        states, F, first, W = ctx.saved_tensors
        (dt, gamma, epsilon), N, dP = ctx.settings, len(W), torch.empty_like(F)
        both = torch.zeros_like(first)
        for part in (None if d_states is None else d_states[-1], d_last):
            if part is not None:
                both += part
        G, S = both[:, :N], both[:, N:]
        steps = zip([None, *rows(d_states, len(F))[:-1]], F.unbind(0), dP.unbind(0), strict=True)
        for outside, f, dp in reversed(list(steps)):
            S.add_(G, alpha=dt)
            torch.mul(S, dt, out=dp).addcmul_(dp * f, f, value=-1)
            G.sub_(S, alpha=dt * gamma)
            S.mul_(1 - dt * epsilon)
            both.addmm_(dp, W)
            if outside is not None:
                both += outside
        return dP, weight_gradient(dP, states, first), both, None, None, None
