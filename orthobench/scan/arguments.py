"""What the hand-written loops are given.

Of the two gates of h_t = alpha act(p_t + W h_{t-1}) + beta h_{t-1} only beta is left in the loop. A homogeneous
activation, act(alpha z) = alpha act(z), takes alpha > 0 inside, where it scales small weights, modReLU's bias among
them, and gets its gradient from theirs. tanh is not homogeneous, and foreign gates may be negative: then the loop runs
over g, which starts at zero, so that nothing is divided by an alpha that may be tiny.

    h_t = act(alpha p_t + (alpha W) h_{t-1}) + beta h_{t-1}
    h_t = alpha g_t + beta^t h_0,   g_t = tanh((p_t + beta^{t-1} W h_0) + (alpha W) g_{t-1}) + beta g_{t-1}
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from orthobench.cells.base import Cell, State, projection
from orthobench.cells.scalar_gated import ScalarGated
from orthobench.parametrizations import base

wrapped: Any = torch._C._functorch.is_functorch_wrapped_tensor  # type: ignore[attr-defined]


class Arguments(NamedTuple):
    """Of the loop h_t = act(p_t + W h_{t-1}) + beta h_{t-1}.

    Attributes:
        p: (T, B, N), in memory that nobody else reads.
        W: (N, N).
        b: modReLU's bias (N,); null for other activations.
        h0: (B, N).
        beta: a scalar; null for the plain cell.
    """

    p: Tensor
    W: Tensor
    b: Tensor | None
    h0: Tensor
    beta: Tensor | None


class Outside(NamedTuple):
    """What of h_t = alpha g_t + beta^t h_0 the loop over g leaves out.

    Attributes:
        alpha: a scalar.
        rest: beta^t h_0 for all t, (B, T, N); null where h_0 is zero.
    """

    alpha: Tensor
    rest: Tensor | None


def elman(cell: Any, x: Tensor, state: State) -> tuple[Arguments, Outside | None]:
    """The arguments for an `Elman` or a `ScalarGated` cell, and what turns the loop's states into the cell's."""
    W, *gates = cell.matrices()
    b = cell.b["h"] if cell.activation == "modrelu" else None
    if not gates:
        p = own_projection(cell, x, W.dtype)
        return Arguments(p, W, b, first_state(state, p, W), None), None
    alpha, beta = (gate.to(W.dtype) for gate in gates)
    if cell.activation == "tanh" or type(cell).matrices is not ScalarGated.matrices:  # whose alpha may be negative
        p = own_projection(cell, x, W.dtype)
        h0 = first_state(state, p, W)
        if _is_zero(h0):
            return Arguments(p, alpha * W, b, h0, beta), Outside(alpha, None)
        powers = beta ** torch.arange(len(p) + 1, dtype=beta.dtype, device=beta.device)
        p = p + powers[:-1, None, None] * (h0 @ W.T)
        rest = powers[1:, None] * h0[:, None]
        return Arguments(p, alpha * W, b, torch.zeros_like(h0), beta), Outside(alpha, rest)
    p = _scaled_projection(cell, x, alpha).to(W.dtype).contiguous()
    return Arguments(p, alpha * W, None if b is None else alpha * b, first_state(state, p, W), beta), None


def _is_zero(h0: Tensor) -> bool:
    """Whether h_0 is known to be zero and needs no gradient; a GPU is not waited for."""
    return not (h0.requires_grad or base.reading_waits(h0) or wrapped(h0) or h0.any())


def scaled(g: Tensor, last: Tensor, outside: Outside | None) -> tuple[Tensor, State]:
    """An engine's answer from a loop's states (B, T, N) and (B, N)."""
    if outside is None:
        return g, (last,)
    alpha, rest = outside
    if rest is None:
        return alpha * g, (alpha * last,)
    return alpha * g + rest, (alpha * last + rest[:, -1],)


def own_projection(cell: Cell, x: Tensor, dtype: torch.dtype) -> Tensor:
    """The cell's projection in memory that nobody else reads, so that hidden states may take its place."""
    p = cell.project(x).to(dtype)
    return p.contiguous() if type(cell).project is Cell.project else p.clone(memory_format=torch.contiguous_format)


def _scaled_projection(cell: Cell, x: Tensor, alpha: Tensor) -> Tensor:
    if type(cell).project is not Cell.project:
        return alpha * cell.project(x)
    bias = cell.joint_bias()
    return projection(x, alpha * cell.U, None if bias is None else alpha * bias)


def first_state(state: State, p: Tensor, W: Tensor) -> Tensor:
    """h_0 (B, N), of one row for the whole batch too."""
    return state[0].to(W.dtype).expand(p.shape[1], W.shape[0])
