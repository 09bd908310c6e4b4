"""DeltaNet, DeltaProduct and mLSTM: the recurrence of the state is one function, the rest is for some steps at once.

The steps are done in windows: what the rest keeps stays in cache, and of all states only those at the start of a window
are kept.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from orthobench.cells.base import State
from orthobench.cells.convolution import Convolve
from orthobench.cells.mlstm import orthogonalised
from orthobench.scan.fused.convolution import convolve
from orthobench.scan.fused.matrix_state import matrix_scan
from orthobench.scan.reference import projected

WINDOW = 32  # steps, or writes where those at once are products of matrices; measured on a CPU at B=50
LONGER, ROWS = 96, 4800  # steps of one in which the recurrence is run, and not solved; of all sequences together

MatrixScanner = Callable[[Tensor, Tensor, Tensor | None, Tensor, bool, Tensor | None], tuple[Any, ...]]
orthogonal_scan: MatrixScanner = partial(matrix_scan, read=orthogonalised)


def delta_product(
    cell: Any,
    x: Tensor,
    state: State,
    scan: MatrixScanner = matrix_scan,
    convolve: Convolve = convolve,
    whole: bool = False,
) -> tuple[Tensor, State]:
    """Run a `DeltaProduct` cell over x from `state`, all of it at once if `whole`; see `reference.run`."""

    def window(p: Tensor, state: State) -> tuple[Tensor, State]:
        S, *before = state
        mixed, b, a, shown = p.split([cell.channels, *cell.sizes[3:]], dim=-1)
        if before:
            qkv, *before = convolve(mixed, before[0], cell.kernel)
        else:
            qkv = F.silu(mixed)
        beta = cell.reach * torch.sigmoid(b).unflatten(-1, (cell.products, cell.heads))
        o, S, *_ = scan(qkv, beta, cell.log_gate(a) if cell.gated else None, S, True, None)
        return cell.read(cell.split(o), shown), (S, *before)

    if whole:
        return in_windows(window, cell, x, state, None)
    scan = scan if cell.key_width == cell.value_width else matrix_scan
    return in_windows(window, cell, x, state, WINDOW // (cell.products if scan is matrix_scan else 1))


def mlstm(
    cell: Any,
    x: Tensor,
    state: State,
    scan: MatrixScanner = matrix_scan,
    convolve: Convolve = convolve,
    whole: bool = False,
    orthogonal: MatrixScanner = orthogonal_scan,
) -> tuple[Tensor, State]:
    """Run an `MLSTM` cell over x from `state`, all of it at once if `whole`; see `reference.run`."""

    def window(p: Tensor, state: State) -> tuple[Tensor, State]:
        (C, n, m, *before) = state
        qk, v, o, *gates = p.split(cell.sizes, dim=-1)
        if before:
            qk, *before = convolve(qk, before[0], cell.kernel)
        log_i, f = gates or cell.gates_of(qk, v)
        kept = F.logsigmoid(f)
        scales = _scales(kept, log_i, m)
        i = torch.exp(log_i - scales) * cell.key_width**-0.5
        log_f = kept + torch.cat([m[:, None], scales[:, :-1]], dim=1) - scales
        recalled, C, r, n = scan(torch.cat([qk, v], dim=-1), i.unsqueeze(2), log_f, C, False, n)
        recalled = cell.split(recalled)
        y = cell.shown(recalled, o) if cell.orthogonal else cell.read(recalled, r, scales, o)
        return y, (C, n, scales[:, -1], *before)

    if cell.orthogonal:
        scan, whole = orthogonal, False
    elif not whole:
        scan = scan if cell.key_width == cell.width else matrix_scan
    return in_windows(window, cell, x, state, None if whole else WINDOW)


def values_per_step(cell: Any) -> int:
    """Numbers kept at the peak of a backward pass, as `Cell.values_per_step`, if the scan keeps no more
    than states.

    As measured, a half more than the projection has, and a share of a window's state.
    """
    return 3 * len(cell.U) // 2 + cell.heads * cell.key_width * cell.value_width // WINDOW


def in_windows(
    window: Callable[[Tensor, State], tuple[Tensor, State]], cell: Any, x: Tensor, state: State, steps: int | None
) -> tuple[Tensor, State]:
    """Run `window` over one part of x after the other.

    Args:
        window: from projections (B, L, M) and a state to outputs (B, L, N) and the next.
        cell: the cell.
        x: inputs, see `reference.run`.
        state: the initial state.
        steps: how many a part has at most, but one at least; None for all of them at once.
    """
    p_TBM = projected(cell, x, ())
    seen, state = [], tuple(s.expand(p_TBM.shape[1], *s.shape[1:]) for s in state)
    with torch.autocast(x.device.type, enabled=False):
        T = len(p_TBM)
        parts = 1 if steps is None else -(-T // max(steps, 1))
        for part in p_TBM.split(-(-T // max(parts, 1))):  # of equal sizes
            y_BTN, state = window(part.transpose(0, 1), state)
            seen.append(y_BTN)
    return torch.cat(seen, dim=1), state


def _scales(kept: Tensor, log_i: Tensor, m: Tensor) -> Tensor:
    """All m_t = max(kept_t + m_{t-1}, log_i_t), (B, T, heads), by spans of steps that double in length.

    Of every step, the largest of what entered in the span up to it, plus what was kept since, and all that was kept.
    """
    largest, reach = log_i, 1
    while reach < kept.shape[1]:
        first, later = kept[:, :reach], kept[:, reach:]
        largest = torch.cat([largest[:, :reach], torch.maximum(largest[:, reach:], largest[:, :-reach] + later)], dim=1)
        kept, reach = torch.cat([first, later + kept[:, :-reach]], dim=1), 2 * reach
    return torch.maximum(largest, m[:, None] + kept)
