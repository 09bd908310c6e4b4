"""Oscillators in C: equations in cells/cornn.py and cells/unicornn.py, backward passes in their files in fused/."""

from typing import Any

import torch
from torch import Tensor

from orthobench.cells.base import State
from orthobench.parametrizations.derivatives import first_only
from orthobench.scan.arguments import first_states
from orthobench.scan.fused.elman import Gradients, first_gradient
from orthobench.scan.native.checks import check
from orthobench.scan.native.library import call, pack, readable, weight_gradient
from orthobench.scan.native.projection import own_projection


def cornn(cell: Any, x: Tensor, state: State) -> tuple[Tensor, State]:
    """Run a `CoRNN` cell over x from `state`; see `reference.run`."""
    (both,), N = cell.matrices(), cell.hidden_size
    p = own_projection(cell, x, both.dtype)
    check(p, both, (N, 2 * N), N)
    physics = torch.tensor([cell.dt, cell.gamma, cell.epsilon], dtype=p.dtype)
    y_TBN, *last = CoRNNScan.apply(p, *both.split(N, dim=1), *first_states(state, p, N), physics)
    return y_TBN.transpose(0, 1), tuple(last)


def unicornn(cell: Any, x: Tensor, state: State) -> tuple[Tensor, State]:
    """Run a `UnICORNN` cell over x from `state`; see `reference.run`."""
    (w, pace), N = cell.matrices(), cell.hidden_size
    p = own_projection(cell, x, w.dtype)
    check(p, w, (N,), N)
    check(p, pace, (N,), N)
    y_TBN, *last = UnICORNNScan.apply(p, w.contiguous(), pace.contiguous(), *first_states(state, p, N), cell.alpha)
    return y_TBN.transpose(0, 1), tuple(last)


class CoRNNScan(torch.autograd.Function):
    """(p_TBN, W, V, y_0, z_0, (dt, gamma, epsilon)) -> (y_TBN, y_T, z_T); the force overwrites p."""

    @staticmethod
    def forward(
        ctx: Any, p_TBN: Tensor, W: Tensor, V: Tensor, y0: Tensor, z0: Tensor, physics: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        F = p_TBN.data
        Y, Z = torch.empty_like(F), torch.empty_like(F)
        call("cornn_forward", F, {}, (pack(W.T), pack(V.T)), P=F, H=Y, K=Z, h0=y0, X=z0, beta=physics)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(Y, Z, F, y0, z0, W, V, physics)
        return Y, Y[-1].clone(), Z[-1].clone()

    @staticmethod
    @first_only("use engine=reference")
    def backward(ctx: Any, dY: Tensor | None, dy: Tensor | None, dz: Tensor | None) -> Gradients:  # type: ignore[override]
        Y, Z, F, y0, z0, W, V, physics = ctx.saved_tensors
        dH, dP = readable(dY), torch.empty_like(F)
        G, S = first_gradient(Y, dH, dy), first_gradient(Z, None, dz)
        call("cornn_backward", F, {}, (pack(W), pack(V)), P=F, dH=dH, dZ=dP, G=G, S=S, beta=physics)
        return dP, weight_gradient(dP, Y, y0), weight_gradient(dP, Z, z0), G, S, None


class UnICORNNScan(torch.autograd.Function):
    """(p_TBN, w, dt s, y_0, z_0, alpha) -> (y_TBN, y_T, z_T); f = tanh(w y + p) overwrites p."""

    @staticmethod
    def forward(
        ctx: Any, p_TBN: Tensor, w: Tensor, pace: Tensor, y0: Tensor, z0: Tensor, alpha: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        F = p_TBN.data
        Y, Z = torch.empty_like(F), torch.empty_like(F)
        call("unicornn_forward", F, {"slope": alpha}, (), P=F, H=Y, K=Z, h0=y0, X=z0, b=w, late=pace)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(Y, Z, F, y0, w, pace)
        ctx.alpha = alpha
        return Y, Y[-1].clone(), Z[-1].clone()

    @staticmethod
    @first_only("use engine=reference")
    def backward(ctx: Any, dY: Tensor | None, dy: Tensor | None, dz: Tensor | None) -> Gradients:  # type: ignore[override]
        Y, Z, F, y0, w, pace = ctx.saved_tensors
        dH, dP = readable(dY), torch.empty_like(F)
        G, S = first_gradient(Y, dH, dy), first_gradient(Z, None, dz)
        dw, dpace = torch.zeros_like(G), torch.zeros_like(G)
        saved = {"P": F, "H": Y, "K": Z, "h0": y0, "b": w, "late": pace}
        call("unicornn_backward", F, {"slope": ctx.alpha}, (), dH=dH, dZ=dP, G=G, S=S, db=dw, dbeta=dpace, **saved)
        return dP, dw.sum(0), dpace.sum(0), G, S, None
