"""Recurrences whose state is a matrix S (d_k, d_v), keys by values, by products of matrices for some steps at once.

    S <- g_t S,   S <- S + beta_j k_j u_j^T for every write j,   o_t = S^T q_t

u_j = v_j, or under the delta rule u_j = v_j - S^T k_j with q and k at length 1. Let D_ij be the product of the gates
between the writes j and i, zero for j > i, and F_i that of all up to i, of one write after the other. Then

    o = F (Q S_0) + (D * Q K^T) diag(beta) U,     S_T = F_T S_0 + K^T diag(beta D_T) U,

with the rows of o at the last write of every step, and U = V or, under the delta rule, the solution of the triangular
system (I + L) U = V - F (K S_0), in which L is what stands below the diagonal of (D * K K^T) diag(beta).
Yang, Wang, Zhang, Shen & Kim (2024), "Parallelizing Linear Transformers with the Delta Rule over Sequence Length",
section 3; Yang, Kautz & Hatamizadeh (2024), "Gated Delta Networks", section 3.3, with gates.

The sum of keys is a vector that is written with the keys alone: z <- g_t z, z <- z + beta_j k_j, r_t = q_t . z.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from orthobench.cells.heads import unit


def matrix_scan(
    x: Tensor,
    beta: Tensor,
    log_gate: Tensor | None,
    S0: Tensor,
    delta: bool,
    z0: Tensor | None = None,
    read: Callable[[Tensor], Tensor] | None = None,
) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
    """All outputs o (B, T, H d_v), the last S, the products r (B, T, H) and the last z.

    Args:
        x: the query, the keys of all writes and their values, (B, T, (1 + writes) H d_k + writes H d_v).
        beta: (B, T, writes, H).
        log_gate: ln g, (B, T, H); None for gates of one.
        S0: (B, H, d_k, d_v).
        delta: whether the delta rule holds.
        z0: (B, H, d_k); None for no sum of keys, and then r and z are None.
        read: what queries read in place of S, of every step's S (B, H, T, d_k, d_v); None for S itself.
    """
    (T, writes, H), (d_k, d_v) = beta.shape[1:], S0.shape[-2:]
    q, k, v = x.split([H * d_k, writes * H * d_k, writes * H * d_v], dim=-1)
    q = q.unflatten(-1, (H, d_k)).transpose(1, 2)
    k, v = (y.unflatten(-1, (writes, H, -1)).flatten(1, 2).transpose(1, 2) for y in (k, v))
    if delta:
        q, k = unit(q), unit(k)
    D, F = _gates(log_gate, T, writes, beta)
    D = D * beta.flatten(1, 2).transpose(1, 2)[..., None, :]
    U = v
    if delta:
        below = (k @ k.transpose(-1, -2)) * D
        U = torch.linalg.solve_triangular(below, v - F * (k @ S0), upper=False, unitriangular=True)
    decays, since, closing = D[..., writes - 1 :: writes, :], F[..., writes - 1 :: writes, :], D[..., -1, :, None] * k
    weights = (q @ k.transpose(-1, -2)) * decays
    if read is None:
        o = since * (q @ S0) + weights @ U
    else:
        states = since * S0.flatten(-2)[..., None, :] + decays @ (k[..., None] * U[..., None, :]).flatten(-2)
        o = (q[..., None, :] @ read(states.unflatten(-1, (d_k, d_v)))).squeeze(-2)
    S = F[..., -1:, :] * S0 + closing.transpose(-1, -2) @ U
    r = z = None
    if z0 is not None:
        r = (since * (q @ z0[..., None])).squeeze(-1) + weights.sum(-1)
        r, z = r.transpose(1, 2), F[..., -1, :] * z0 + closing.sum(-2)
    return o.transpose(1, 2).flatten(-2), S, r, z


def _gates(log_gate: Tensor | None, T: int, writes: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """D (..., T writes, T writes) and F (..., T writes, 1) of every sequence and head; a gate precedes a step's writes.

    The logarithms are added from one write to the next, because differences of long sums lose digits.
    """
    L = T * writes
    later = like.new_ones(L, L).tril()
    if log_gate is None:
        return later, like.new_ones(L, 1)
    logs = torch.cat([log_gate[:, :, None], log_gate.new_zeros(*log_gate.shape[:2], writes - 1, log_gate.shape[-1])], 2)
    logs = logs.flatten(1, 2).transpose(1, 2)[..., None]
    between = (logs * later.tril(-1)).cumsum(-2)
    return torch.exp(between) * later, torch.exp(logs.cumsum(-2))
