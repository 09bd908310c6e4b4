"""An Euler step of a linear and a nonlinear flow in C; cells/lipschitz.py has the equations.

With M = I + eps A, or without the linear flow M = I, and f = tanh(W h_{t-1} + p_t), a step is h_t = M h_{t-1} + eps f.
With G_t = dL/dh_t one step of the backward pass is

    dp_t = eps G_t (1 - f^2),   G_{t-1} = M^T G_t + W^T dp_t + what comes from outside,   dM = sum_t G_t h_{t-1}^T
"""

from typing import Any

import torch
from torch import Tensor

from orthobench.cells.base import State
from orthobench.parametrizations.derivatives import first_only
from orthobench.scan.arguments import first_state
from orthobench.scan.fused.elman import Gradients, first_gradient
from orthobench.scan.native.checks import check
from orthobench.scan.native.library import call, pack, readable, weight_gradient
from orthobench.scan.native.projection import own_projection


def run(cell: Any, x: Tensor, state: State) -> tuple[Tensor, State]:
    """Run a `Lipschitz` cell over x from `state`; see `reference.run`."""
    (both,), N = cell.matrices(), cell.hidden_size
    p, W, M = own_projection(cell, x, both.dtype), both[-N:], None
    check(p, both, ((2 if cell.linear else 1) * N, N), N)
    if cell.linear:
        M = torch.eye(N, dtype=both.dtype) + cell.eps * both[:N]
    h_TBN, last = LipschitzScan.apply(p, W, M, first_state(state, p, W), cell.eps)
    return h_TBN.transpose(0, 1), (last,)


class LipschitzScan(torch.autograd.Function):
    """(p_TBN, W, M, h_0, eps) -> (h_TBN, h_T); f overwrites p, and M may be None."""

    @staticmethod
    def forward(ctx: Any, p_TBN: Tensor, W: Tensor, M: Tensor | None, h0: Tensor, eps: float) -> tuple[Tensor, Tensor]:
        F, h0 = p_TBN.data, h0.contiguous()
        H, weights = torch.empty_like(F), (pack(W.T),) if M is None else (pack(W.T), pack(M.T))
        call("lipschitz_forward", H, {"slope": eps}, weights, P=F, H=H, h0=h0)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(H, F, h0, W, M)
        ctx.eps = eps
        return H, H[-1].clone()

    @staticmethod
    @first_only("use engine=reference")
    def backward(ctx: Any, dH: Tensor | None, dlast: Tensor | None) -> Gradients:  # type: ignore[override]
        H, F, h0, W, M = ctx.saved_tensors
        dH, dZ, X, G = readable(dH), torch.empty_like(F), torch.empty_like(H), torch.empty_like(h0)
        X[-1] = first_gradient(H, dH, dlast)
        weights = (pack(W),) if M is None else (pack(W), pack(M))
        call("lipschitz_backward", H, {"slope": ctx.eps}, weights, P=F, X=X, dH=dH, dZ=dZ, G=G)
        return dZ, weight_gradient(dZ, H, h0), None if M is None else weight_gradient(X, H, h0), G, None
