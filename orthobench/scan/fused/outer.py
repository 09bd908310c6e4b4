"""Cells of `cells/outer.py` for some steps at once: the recurrence is solved, not run.

With c_t the sum of ln g up to step t, E_ti = exp(c_t - c_i) channel by channel, and u_t what step t erases, (S^T r_t),

    u_t = S_0^T (exp(c_t) r_t) + sum over i < t of (r_t . E_ti k_i) v_i - (r_t . E_ti p_i) u_i
    o_t = S_0^T (exp(c_t) q_t) + sum over i <= t of (q_t . E_ti k_i) v_i - (q_t . E_ti p_i) u_i

so that U is the solution of a triangular system. E is at most one, whatever the decay.
Yang, Kautz & Hatamizadeh (2025), "Gated Delta Networks", section 3.3; Kimi Team (2025), "Kimi Linear", section 3.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from orthobench.cells.base import State
from orthobench.cells.convolution import Convolve
from orthobench.cells.heads import GatedNorm
from orthobench.cells.outer import Writes
from orthobench.scan.fused.convolution import convolve
from orthobench.scan.fused.matrix_cells import LONGER, ROWS, WINDOW, in_windows

OuterScanner = Callable[[Writes, Tensor], tuple[Tensor, Tensor]]


def outer_scan(writes: Writes, S0: Tensor) -> tuple[Tensor, Tensor]:
    """All outputs o (B, T, H, d_v) and the last S, from S_0 (B, H, d_k, d_v)."""
    log_g, q, k, v, r, p = writes.each(lambda part: part.transpose(1, 2))
    T, c = q.shape[2], log_g.cumsum(2)
    later = torch.ones(T, T, dtype=torch.bool, device=q.device).tril()
    # the logarithms of E, added from one step to the next, because differences of long sums lose digits
    since = (log_g[:, :, :, None] * later.tril(-1)[:, :, None]).cumsum(2)
    E = torch.where(later[..., None], since, -torch.inf).exp()  # (B, H, T, T, d_k or 1)
    p = k if p is None else p

    def between(x: Tensor, y: Tensor) -> Tensor:
        """The products x_t . E_ti y_i, (B, H, T, T)."""
        if E.shape[-1] == 1:
            return (x @ y.transpose(-1, -2)) * E[..., 0]
        return torch.einsum("bhtd,bhtid,bhid->bhti", x, E, y)

    carried, u = c.exp(), None
    if r is not None:
        past = (carried * r) @ S0 + between(r, k).tril(-1) @ v
        u = torch.linalg.solve_triangular(between(r, p).tril(-1), past, upper=False, unitriangular=True)
    o = (carried * q) @ S0 + between(q, k) @ v
    ending = E[:, :, -1]
    S = carried[:, :, -1, :, None] * S0 + (ending * k).transpose(-1, -2) @ v
    if u is not None:
        o = o - between(q, p) @ u
        S = S - (ending * p).transpose(-1, -2) @ u
    return o.transpose(1, 2), S


def run(
    cell: Any,
    x: Tensor,
    state: State,
    scan: OuterScanner = outer_scan,
    convolve: Convolve = convolve,
    whole: bool = False,
    norm: GatedNorm | None = None,
    **ways: Any,
) -> tuple[Tensor, State]:
    """Run an `Outer` cell over x from `state`, all of it at once if `whole`; see `reference.run`.

    `ways` are an engine's own ways of what the cell's `writes` does, and `norm` of what its `read` does.
    """
    read = cell.read if norm is None else partial(cell.read, norm=norm)

    def window(p: Tensor, state: State) -> tuple[Tensor, State]:
        S, *before = state
        writes, told, before = cell.writes(p, tuple(before), convolve, **ways)
        o, S = scan(writes, S)
        return read(o, *told), (S, *before)

    steps = WINDOW // 2 if scan is outer_scan else max(WINDOW, min(LONGER, ROWS // max(len(x), 1)))
    return in_windows(window, cell, x, state, None if whole else steps)
