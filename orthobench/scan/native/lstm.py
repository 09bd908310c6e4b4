"""Long short-term memory in C; cells/lstm.py has the equations.

With G = dL/dh_t, s = tanh(c_t) and C the part of dL/dc_t that comes from step t + 1, one step of the backward pass is

    d = C + G o (1 - s^2),   dz_i = d g i (1 - i),   dz_f = d c_{t-1} f (1 - f),   dz_g = d i (1 - g^2)
    dz_o = G s o (1 - o),    C <- d f,               G <- W^T dz + what comes from outside
"""

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


def run(cell: Any, x: Tensor, state: State) -> tuple[Tensor, State]:
    """Run an `LSTM` cell over x from `state`; see `reference.run`."""
    (W,) = cell.matrices()
    p, N = own_projection(cell, x, W.dtype), cell.hidden_size
    check(p, W, (4 * N, N), 4 * N)
    h_TBN, *last = LSTMScan.apply(p, W, *first_states(state, p, N))
    return h_TBN.transpose(0, 1), tuple(last)


class LSTMScan(torch.autograd.Function):
    """(p_TBM, W, h_0, c_0) -> (h_TBN, h_T, c_T), M = 4N; the gates overwrite p."""

    @staticmethod
    def forward(ctx: Any, p_TBM: Tensor, W: Tensor, h0: Tensor, c0: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        gates = p_TBM.data
        H, C = (gates.new_empty(*gates.shape[:2], h0.shape[-1]) for _ in range(2))
        call("lstm_forward", H, {}, (pack(W.T),), P=gates, H=H, K=C, h0=h0, X=c0)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(H, C, gates, h0, c0, W)
        return H, H[-1].clone(), C[-1].clone()

    @staticmethod
    @first_only("use engine=reference")
    def backward(ctx: Any, dH: Tensor | None, dh: Tensor | None, dc: Tensor | None) -> Gradients:  # type: ignore[override]
        H, C, gates, h0, c0, W = ctx.saved_tensors
        dH, dZ, G = readable(dH), torch.empty_like(gates), first_gradient(H, dH, dh)
        S = first_gradient(C, None, dc)
        call("lstm_backward", H, {}, (pack(W),), P=gates, H=H, K=C, h0=h0, X=c0, dH=dH, dZ=dZ, G=G, S=S)
        return dZ, weight_gradient(dZ, H, h0), G, S
