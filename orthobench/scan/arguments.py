"""The arguments of the hand-written loops.

The scalar-gated recurrence h_t = alpha act(p_t + W h_{t-1}) + beta h_{t-1} has two gates, and only beta stays in the
loop. With a homogeneous activation, act(alpha z) = alpha act(z) for alpha > 0, alpha scales the weights instead,
modReLU's bias included, and gets its gradient from theirs. tanh is not homogeneous, and the gates of a subclass may be
negative: in these cases the loop runs over g, which starts at zero, so that nothing is divided by a tiny alpha.

    h_t = act(alpha p_t + (alpha W) h_{t-1}) + beta h_{t-1}
    h_t = alpha g_t + beta^t h_0,   g_t = tanh((p_t + beta^{t-1} W h_0) + (alpha W) g_{t-1}) + beta g_{t-1}
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from orthobench.cells.base import Cell, State, projection
from orthobench.cells.scalar_gated import ScalarGated
from orthobench.parametrizations import base

Project = Callable[[Tensor, Tensor, Tensor | None], Tensor]


class Arguments(NamedTuple):
    """The arguments of the loop h_t = act(p_t + W h_{t-1}) + beta h_{t-1}.

    Attributes:
        p: the projections (T, B, N), in memory that the loop may overwrite.
        W: (N, N).
        b: modReLU's bias (N,); None for other activations.
        h0: (B, N).
        beta: a scalar; None for the plain cell.
    """

    p: Tensor
    W: Tensor
    b: Tensor | None
    h0: Tensor
    beta: Tensor | None


class Outside(NamedTuple):
    """The parts of h_t = alpha g_t + beta^t h_0 that the loop over g does not compute.

    Attributes:
        alpha: a scalar.
        rest: beta^t h_0 for all t, (B, T, N); None where h_0 is zero.
    """

    alpha: Tensor
    rest: Tensor | None


def elman(cell: Any, x: Tensor, state: State, project: Project = projection) -> tuple[Arguments, Outside | None]:
    """The arguments for an `Elman` or a `ScalarGated` cell, and what turns the loop's states into the cell's.

    `project` is the engine's way of computing `cells.base.projection`.
    """
    W, *gates = cell.matrices()
    b = cell.b["h"] if cell.activation == "modrelu" else None
    if not gates:
        p = own_projection(cell, x, W.dtype, project)
        return Arguments(p, W, b, first_state(state, p, W), None), None
    alpha, beta = (gate.to(W.dtype) for gate in gates)
    if cell.activation == "tanh" or type(cell).matrices is not ScalarGated.matrices:  # a subclass's alpha may be < 0
        p = own_projection(cell, x, W.dtype, project)
        h0 = first_state(state, p, W)
        if _is_zero(h0):
            return Arguments(p, alpha * W, b, h0, beta), Outside(alpha, None)
        powers = beta ** torch.arange(len(p) + 1, dtype=beta.dtype, device=beta.device)
        p = p + powers[:-1, None, None] * (h0 @ W.T)
        rest = powers[1:, None] * h0[:, None]
        return Arguments(p, alpha * W, b, torch.zeros_like(h0), beta), Outside(alpha, rest)
    p = scaled_projection(cell, x, alpha, project).to(W.dtype).contiguous()
    return Arguments(p, alpha * W, None if b is None else alpha * b, first_state(state, p, W), beta), None


def _is_zero(h0: Tensor) -> bool:
    """Return True if h_0 is known, without waiting for a GPU, to be zero and to need no gradient."""
    return not (h0.requires_grad or base.reading_waits(h0) or base.wrapped(h0) or h0.any())


def scaled(g: Tensor, last: Tensor, outside: Outside | None) -> tuple[Tensor, State]:
    """The cell's hidden states (B, T, N) and final state (B, N) from those of the loop."""
    if outside is None:
        return g, (last,)
    alpha, rest = outside
    if rest is None:
        return alpha * g, (alpha * last,)
    return alpha * g + rest, (alpha * last + rest[:, -1],)


def own_projection(cell: Cell, x: Tensor, dtype: torch.dtype, project: Project = projection) -> Tensor:
    """The cell's projection (T, B, M) in memory of its own, so that hidden states may overwrite it."""
    if type(cell).project is Cell.project:
        return project(x, cell.U, cell.joint_bias()).to(dtype).contiguous()
    return cell.project(x).to(dtype).clone(memory_format=torch.contiguous_format)


def scaled_projection(cell: Cell, x: Tensor, alpha: Tensor, project: Project = projection) -> Tensor:
    """The cell's projection times a scalar gate."""
    if type(cell).project is not Cell.project:
        return alpha * cell.project(x)
    bias = cell.joint_bias()
    return project(x, alpha * cell.U, None if bias is None else alpha * bias)


def first_states(state: State, p: Tensor, N: int) -> list[Tensor]:
    """Each of several states as (B, N), contiguous, also where it was given as one row (1, N) for the whole batch."""
    return [s.to(p.dtype).expand(p.shape[1], N).contiguous() for s in state]


def first_state(state: State, p: Tensor, W: Tensor) -> Tensor:
    """h_0 as (B, N), also when it was given as one row (1, N) for the whole batch."""
    return state[0].to(W.dtype).expand(p.shape[1], W.shape[0])
