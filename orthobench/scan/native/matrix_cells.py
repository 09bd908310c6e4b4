"""DeltaNet, DeltaProduct and mLSTM with the state's recurrence in C, and the rest for some steps at once.

The steps are done in windows: what the rest keeps stays in cache, and of all states only those at the start of a window
are kept.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from orthobench.cells.base import State
from orthobench.scan.native.convolution import convolve
from orthobench.scan.native.diagonal import diagonal_scan
from orthobench.scan.native.matrix_state import MatrixScan
from orthobench.scan.reference import projected

WINDOW = 32  # steps; measured at n=128, 4 heads, B=50

Window = Callable[[Any, Tensor, State], tuple[Tensor, State]]


def delta_product(cell: Any, x: Tensor, state: State) -> tuple[Tensor, State]:
    """Run a `DeltaProduct` cell over x from `state`; see `reference.run`."""
    return _in_windows(_delta_product, cell, x, state)


def mlstm(cell: Any, x: Tensor, state: State) -> tuple[Tensor, State]:
    """Run an `MLSTM` cell over x from `state`; see `reference.run`."""
    return _in_windows(_mlstm, cell, x, state)


def values_per_step(cell: Any) -> int:
    """See `Cell.values_per_step`: as measured, a half more than the projection has, and a share of a window's state."""
    return 3 * len(cell.U) // 2 + cell.hidden_size * cell.width // WINDOW


def _in_windows(window: Window, cell: Any, x: Tensor, state: State) -> tuple[Tensor, State]:
    seen, state = [], tuple(s.expand(x.shape[0], *s.shape[1:]) for s in state)
    p_TBM = projected(cell, x, ())
    with torch.autocast(x.device.type, enabled=False):
        for part in p_TBM.split(WINDOW):
            y_BTN, state = window(cell, part.transpose(0, 1), state)
            seen.append(y_BTN)
    return torch.cat(seen, dim=1), state


def _delta_product(cell: Any, p: Tensor, state: State) -> tuple[Tensor, State]:
    S, *before = state
    mixed, b, *a = p.split([cell.channels, *cell.sizes[3:]], dim=-1)
    if before:
        qkv, *before = convolve(mixed, before[0], cell.kernel)
    else:
        qkv = F.silu(mixed)
    beta = cell.reach * torch.sigmoid(b).unflatten(-1, (cell.products, cell.heads))
    o, S, *_ = MatrixScan.apply(qkv, beta, cell.gate(a[0]) if a else None, S, True)
    return cell.read(cell.split(o)), (S, *before)


def _mlstm(cell: Any, p: Tensor, state: State) -> tuple[Tensor, State]:
    (C, n, m, *before), (N, H) = state, (cell.hidden_size, cell.heads)
    qk, v, o, log_i, f = p.split([2 * N, N, N, H, H], dim=-1)
    if before:
        qk, *before = convolve(qk, before[0], cell.kernel)
    kept = F.logsigmoid(f)
    scales = _scales(kept, log_i, m)
    i = torch.exp(log_i - scales) * cell.width**-0.5
    f = torch.exp(kept + torch.cat([m[:, None], scales[:, :-1]], dim=1) - scales)
    recalled, C, r, n = MatrixScan.apply(torch.cat([qk, v], dim=-1), i.unsqueeze(2), f, C, False, n)
    return cell.read(cell.split(recalled), r, scales, o), (C, n, scales[:, -1], *before)


def _scales(kept: Tensor, log_i: Tensor, m: Tensor) -> Tensor:
    """All m_t = max(kept_t + m_{t-1}, log_i_t), (B, T, heads): a diagonal recurrence, once the larger is known."""
    with torch.no_grad():
        larger, last = [], m
        for kept_t, log_i_t in zip(kept.unbind(1), log_i.unbind(1), strict=True):
            last = kept_t + last
            larger.append(last > log_i_t)
            last = torch.maximum(last, log_i_t)
        keeps = torch.stack(larger, dim=1)
    return _scan(keeps.to(m.dtype), torch.where(keeps, kept, log_i), m)


def _scan(a: Tensor, b: Tensor, h0: Tensor) -> Tensor:
    return diagonal_scan(a.transpose(0, 1), b.transpose(0, 1), h0).transpose(0, 1)
