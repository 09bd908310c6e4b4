"""Long expressive memory in C; cells/lem.py has the equations, fused/lem.py those of the backward pass."""

from typing import Any

import torch
from torch import Tensor

from orthobench.cells.base import State
from orthobench.parametrizations.derivatives import first_only
from orthobench.scan.arguments import first_states
from orthobench.scan.fused.elman import Gradients, first_gradient
from orthobench.scan.native.checks import check
from orthobench.scan.native.library import add_outer, call, pack, readable, weight_gradient
from orthobench.scan.native.projection import own_projection


def run(cell: Any, x: Tensor, state: State) -> tuple[Tensor, State]:
    """Run a `LEM` cell over x from `state`; see `reference.run`."""
    (W, W_y), N = cell.matrices(), cell.hidden_size
    p = own_projection(cell, x, W.dtype)
    check(p, W, (3 * N, N), 4 * N)
    check(p, W_y, (N, N), 4 * N)
    y_TBN, *last = LEMScan.apply(p, W, W_y, *first_states(state, p, N), cell.dt)
    return y_TBN.transpose(0, 1), tuple(last)


class LEMScan(torch.autograd.Function):
    """(p_TBM, W, W_y, y_0, z_0, dt) -> (y_TBN, y_T, z_T), M = 4N; the time steps and candidates overwrite p."""

    @staticmethod
    def forward(
        ctx: Any, p_TBM: Tensor, W: Tensor, W_y: Tensor, y0: Tensor, z0: Tensor, dt: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        P = p_TBM.data
        Y, Z = (P.new_empty(*P.shape[:2], y0.shape[-1]) for _ in range(2))
        call("lem_forward", Y, {"slope": dt}, (pack(W.T), pack(W_y.T)), P=P, H=Y, K=Z, h0=y0, X=z0)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(Y, Z, P, y0, z0, W, W_y)
        ctx.dt = dt
        return Y, Y[-1].clone(), Z[-1].clone()

    @staticmethod
    @first_only("use engine=reference")
    def backward(ctx: Any, dY: Tensor | None, dy: Tensor | None, dz: Tensor | None) -> Gradients:  # type: ignore[override]
        Y, Z, P, y0, z0, W, W_y = ctx.saved_tensors
        dH, dP, N = readable(dY), torch.empty_like(P), y0.shape[-1]
        G, S = first_gradient(Y, dH, dy), first_gradient(Z, None, dz)
        saved = {"P": P, "H": Y, "K": Z, "h0": y0, "X": z0}
        call("lem_backward", Y, {"slope": ctx.dt}, (pack(W), pack(W_y)), dH=dH, dZ=dP, G=G, S=S, **saved)
        dW_y = W_y.new_zeros(N, N)  # contiguous, which W_y need not be
        add_outer(dP[..., 3 * N :], Z, dW_y)
        return dP, weight_gradient(dP[..., : 3 * N], Y, y0), dW_y, G, S, None
