"""The gated recurrent unit in one kernel each way; fused/gru.py has the equations, elman.py says what S and H are.

Gates, projections and matrices are each stored as G blocks in the order r, u, c; without a reset G = 2 and r is left
out. It saves the states, the gates, and k = W_c h + b_k where the reset comes after the product.
"""

from typing import Any

import torch
from torch import Tensor

from orthobench.cells.base import State
from orthobench.cells.members import Members
from orthobench.cells.projection import outer
from orthobench.parametrizations.derivatives import first_only
from orthobench.scan.gpu.members import Launch, contiguous, outside, states_from


def run(launch: Launch, cell: Any, x: Tensor, state: State) -> tuple[Tensor, State]:
    """Run a `GRU` cell over x from `state`; see `reference.run`."""
    W = torch.stack(cell.matrices())
    p = cell.project(x).to(W.dtype)
    b = cell.b["c"][None] if "c" in cell.inside else None
    b_k = cell.b_hidden["c"][None] if "c" in cell.late and "c" in cell.b_hidden else None
    h0 = state[0].to(W.dtype).expand(p.shape[1], W.shape[-1])
    settings = cell.activation, cell.negative_slope, cell.reset, torch.is_grad_enabled()
    states, last, *_ = GRUKernels.apply(launch, p[None], W[None], b, b_k, h0[None], *settings)
    return states.squeeze(0).transpose(0, 1), (last.squeeze(0),)


class GRUKernels(Members, torch.autograd.Function):
    """(launch, p_STBM, W_SGNN, b_SN, b_k_SN, h0_SBN, activation, slope, reset, training) -> (states, h_T, H, gates, K).

    M is G N, and elman.py says what states and H are. b is modReLU's bias, b_k the bias that r multiplies; each is None
    where the cell has none. Gates and K are None where there is no backward pass, unless `training`.
    """

    @staticmethod
    def forward(
        launch: Launch,
        p: Tensor,
        W: Tensor,
        b: Tensor | None,
        b_k: Tensor | None,
        h0: Tensor,
        activation: str,
        slope: float,
        reset: str,
        training: bool,
    ) -> tuple[Tensor | None, ...]:
        (S, T, B, _), (G, N) = p.shape, W.shape[1:3]
        H, gates = states_from(h0, p), p.new_empty(p.shape) if training else None
        K = p.new_empty(S, T, B, N) if training and reset == "after" else None
        tensors = (p.contiguous(), W.mT.contiguous(), contiguous(b), contiguous(b_k), H, gates, K)
        key = {"ACTIVATION": activation, "SLOPE": slope, "RESET": reset, "LATE": b_k is not None, "KEPT": training}
        launch("gru_forward", tensors, (S, T, B, N), G, key)
        return H[:, 1:], H[:, -1], H, gates, K

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor | None, ...]) -> None:
        ctx.launch, _, W, _, _, _, *ctx.settings, _ = inputs
        _, _, *kept = output
        H, gates, K = kept
        ctx.mark_non_differentiable(*(x for x in kept if x is not None))
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(H, gates, K, W)

    @staticmethod
    @first_only("use engine=reference")
    def backward(ctx: Any, dH: Tensor | None, dlast: Tensor | None, *_: Any) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        H, gates, K, W = ctx.saved_tensors
        activation, slope, reset = ctx.settings
        (S, T, B, _), (count, N) = gates.shape, W.shape[1:3]
        dp, G = torch.empty_like(gates), H.new_empty(S, B, N)
        db = torch.empty_like(G) if activation == "modrelu" else None
        dH, dlast, key = outside(dH, dlast, G)
        tensors = (dH, dlast, W.contiguous(), H, gates, K, dp, G, db)
        key |= {"ACTIVATION": activation, "SLOPE": slope, "RESET": reset}
        ctx.launch("gru_backward", tensors, (S, T, B, N), count, key)
        needed, dz_c, h, dW = ctx.needs_input_grad, dp[..., -N:], H[:, :-1], None
        dk = dz_c * gates[..., :N] if reset == "after" and (needed[2] or needed[4]) else dz_c
        if needed[2]:
            dW_c = outer(dk, gates[..., :N] * h if reset == "before" else h)
            dW = torch.cat([outer(dp[..., :-N], h).unflatten(1, (-1, N)), dW_c[:, None]], 1)
        db = db.sum(1) if db is not None and needed[3] else None
        return None, dp, dW, db, dk.sum((1, 2)) if needed[4] else None, G, None, None, None, None
