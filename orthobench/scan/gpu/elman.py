"""The Elman and the scalar-gated recurrence in one kernel each way; fused/elman.py has the equations.

`launch` starts the kernels of an engine, `elman_forward` and `elman_backward`. Shapes have a leading axis S of members,
each with a matrix of its own; a single run has one member. H holds h_0 and all states after it, so that one product
over all steps gives dW. Where the backward pass cannot be computed from the states (behind a gate, and for the
activation abs), A holds what it needs.
"""

from typing import Any

import torch
from torch import Tensor

from orthobench.cells.base import State
from orthobench.cells.projection import outer
from orthobench.parametrizations.derivatives import first_only
from orthobench.scan.arguments import elman, scaled
from orthobench.scan.gpu.members import Launch, Members, contiguous, states_from


def run(launch: Launch, cell: Any, x: Tensor, state: State) -> tuple[Tensor, State]:
    """Run an `Elman` or `ScalarGated` cell over x from `state`; see `reference.run`."""
    arguments, outside = elman(cell, x, state)
    members = (None if tensor is None else tensor[None] for tensor in arguments)
    H, _ = ElmanKernels.apply(launch, *members, cell.activation, cell.negative_slope, torch.is_grad_enabled())
    return scaled(H[0, 1:].transpose(0, 1), H[0, -1], outside)


class ElmanKernels(Members, torch.autograd.Function):
    """(launch, p_STBN, W_SNN, b_SN, h0_SBN, beta_S, activation, slope, training) -> (H, A), H (S, T + 1, B, N).

    A is null where it equals H, and where there is no backward pass, unless `training`.
    """

    @staticmethod
    def forward(
        launch: Launch,
        p: Tensor,
        W: Tensor,
        b: Tensor | None,
        h0: Tensor,
        beta: Tensor | None,
        activation: str,
        slope: float,
        training: bool,
    ) -> tuple[Tensor, Tensor | None]:
        H = states_from(h0, p)
        A = torch.empty_like(H) if training and (beta is not None or activation == "abs") else None
        tensors = (p.contiguous(), W.mT.contiguous(), contiguous(b), contiguous(beta), H, A)
        key = {"ACTIVATION": activation, "SLOPE": slope, "GATED": beta is not None, "KEPT": A is not None}
        launch("elman_forward", tensors, p.shape, 1, key)
        return H, A

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor | None]) -> None:
        ctx.launch, _, W, _, _, beta, ctx.activation, ctx.slope, _ = inputs
        H, A = output
        if A is not None:
            ctx.mark_non_differentiable(A)
        ctx.save_for_backward(H, A, W, beta)

    @staticmethod
    @first_only("use engine=reference")
    def backward(ctx: Any, dH: Tensor, _: Tensor | None) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        H, A, W, beta = ctx.saved_tensors
        S, T, B, N = H[:, 1:].shape
        dp, G = H.new_empty(S, T, B, N), H.new_empty(S, B, N)
        dbeta = None if beta is None else torch.empty_like(G)
        tensors = (dH.contiguous(), W.contiguous(), contiguous(beta), H, A, dp, G, dbeta)
        key = {"ACTIVATION": ctx.activation, "SLOPE": ctx.slope, "GATED": beta is not None}
        ctx.launch("elman_backward", tensors, (S, T, B, N), 1, key)
        needed = ctx.needs_input_grad
        dW = outer(dp, H[:, :-1]) if needed[2] else None
        db = (dp * (H if A is None else A)[:, 1:].sign()).sum((1, 2)) if needed[3] else None
        return None, dp, dW, db, G, None if dbeta is None else dbeta.sum((1, 2)), None, None, None
