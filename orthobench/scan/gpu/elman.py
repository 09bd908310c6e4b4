"""The Elman and the scalar-gated recurrence in one kernel each way; fused/elman.py has the equations.

`launch` starts the kernels of an engine, `elman_forward` and `elman_backward`. Shapes have a leading axis S of members,
each with a matrix of its own; a single run has one member. H holds h_0 and all states after it, so that one product
over all steps gives dW. The states after h_0 and the last one are two outputs, so that the gradient of either comes
as it is, and not as part of a tensor of zeros. Where the backward pass cannot be computed from the states (behind a
gate, and for the activation abs), A holds what it needs.
"""

from typing import Any

import torch
from torch import Tensor

from orthobench.cells.base import State
from orthobench.cells.members import Members
from orthobench.cells.projection import outer
from orthobench.parametrizations.derivatives import first_only
from orthobench.scan.arguments import elman, scaled
from orthobench.scan.gpu.members import Launch, contiguous, outside, states_from


def run(launch: Launch, cell: Any, x: Tensor, state: State) -> tuple[Tensor, State]:
    """Run an `Elman` or `ScalarGated` cell over x from `state`; see `reference.run`."""
    arguments, rest = elman(cell, x, state)
    members = (None if tensor is None else tensor[None] for tensor in arguments)
    settings = cell.activation, cell.negative_slope, torch.is_grad_enabled()
    states, last, *_ = ElmanKernels.apply(launch, *members, *settings)
    return scaled(states.squeeze(0).transpose(0, 1), last.squeeze(0), rest)


class ElmanKernels(Members, torch.autograd.Function):
    """(launch, p_STBN, W_SNN, b_SN, h0_SBN, beta_S, activation, slope, training) -> (states, h_T, H, A).

    States are (S, T, B, N), H and A (S, T + 1, B, N). A is None where it equals H, and where there is no backward pass,
    unless `training`.
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
    ) -> tuple[Tensor | None, ...]:
        H = states_from(h0, p)
        A = torch.empty_like(H) if training and (beta is not None or activation == "abs") else None
        tensors = (p.contiguous(), W.mT.contiguous(), contiguous(b), contiguous(beta), H, A)
        key = {"ACTIVATION": activation, "SLOPE": slope, "GATED": beta is not None, "KEPT": A is not None}
        launch("elman_forward", tensors, p.shape, 1, key)
        return H[:, 1:], H[:, -1], H, A

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor | None, ...]) -> None:
        ctx.launch, _, W, _, _, beta, ctx.activation, ctx.slope, _ = inputs
        _, _, *kept = output
        H, A = kept
        ctx.mark_non_differentiable(*(x for x in kept if x is not None))
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(H, A, W, beta)

    @staticmethod
    @first_only("use engine=reference")
    def backward(ctx: Any, dH: Tensor | None, dlast: Tensor | None, *_: Any) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        H, A, W, beta = ctx.saved_tensors
        S, T, B, N = H[:, 1:].shape
        dp, G = H.new_empty(S, T, B, N), H.new_empty(S, B, N)
        dbeta, db = (
            torch.empty_like(G) if needed else None for needed in (beta is not None, ctx.activation == "modrelu")
        )
        dH, dlast, key = outside(dH, dlast, G)
        tensors = (dH, dlast, W.contiguous(), contiguous(beta), H, A, dp, G, dbeta, db)
        key |= {"ACTIVATION": ctx.activation, "SLOPE": ctx.slope, "GATED": beta is not None}
        ctx.launch("elman_backward", tensors, (S, T, B, N), 1, key)
        needed = ctx.needs_input_grad
        dW = outer(dp, H[:, :-1]) if needed[2] else None
        db = db.sum(1) if db is not None and needed[3] else None
        return None, dp, dW, db, G, None if dbeta is None else dbeta.sum((1, 2)), None, None, None
