"""Cells that are linear in their state and act on every unit by itself: all but one scan is done for all steps at once.

    h_t = a_t * h_{t-1} + b_t

The scan is in two levels: the steps are laid out in about sqrt(T) rows of as many; within all rows at once the states
are computed as if each began at zero, and then what is handed from row to row is added. With G_t = dL/dh_t the backward
pass is the same scan from the last step to the first, G_{t-1} = conj(a_t) G_t plus the gradient that comes from
outside; db_t = G_t and da_t = conj(h_{t-1}) G_t.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from orthobench.cells.base import State
from orthobench.parametrizations.derivatives import first_only
from orthobench.scan.fused.elman import Gradients
from orthobench.scan.reference import projected

DiagonalScanner = Callable[[Tensor, Tensor, Tensor], Tensor]


def diagonal_scan(a: Tensor, b: Tensor, h0: Tensor) -> Tensor:
    """All states of h_t = a_t * h_{t-1} + b_t, (T, B, N).

    Args:
        a: (N,), (T, B, N), or what broadcasts to it; real where b is real.
        b: (T, B, N).
        h0: (B, N), or what broadcasts to it.
    """
    return TwoLevelScan.apply(a.to(b.dtype), b, h0.to(b.dtype).expand(b.shape[1:]))


def run(cell: Any, x: Tensor, state: State, scan: DiagonalScanner = diagonal_scan) -> tuple[Tensor, State]:
    """Run a `DiagonalLinear` cell over x from `state`; see `reference.run`."""
    W = cell.matrices()
    p_TBM = projected(cell, x, W)
    with torch.autocast(x.device.type, enabled=False):
        h_TBN = scan(*cell.coefficients(p_TBM, W), *state)
        seen = cell.read(h_TBN, p_TBM, W) if cell.returns_output else h_TBN
    return seen.transpose(0, 1), (h_TBN[-1].clone(),)


class TwoLevelScan(torch.autograd.Function):
    """(a, b_TBN, h_0) -> h_TBN; it saves a and h."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, h0: Tensor) -> Tensor:
        H = _scan(_of_steps(a, len(b)), b, h0)
        ctx.save_for_backward(a, H, h0)
        return H

    @staticmethod
    @first_only("use engine=reference")
    def backward(ctx: Any, dH: Tensor) -> Gradients:  # type: ignore[override]
        a, H, h0 = ctx.saved_tensors
        steps = _of_steps(a, len(H)).conj()
        later = torch.cat([steps[1:], torch.zeros_like(steps[:1])])  # the last state is followed by none
        G = _scan(later.flip(0), dH.flip(0), torch.zeros_like(h0)).flip(0)
        da = torch.cat([h0[None], H[:-1]]).conj() * G
        return da.sum_to_size(a.shape), G, steps[0] * G[0]


def _of_steps(a: Tensor, T: int) -> Tensor:
    """The factors of T steps, (T, 1, 1), (T, 1, N), (T, B, N) or what broadcasts to it."""
    a = a[(None,) * (3 - a.dim())]
    return a.expand(T, *a.shape[1:])


def _scan(a: Tensor, b: Tensor, h0: Tensor) -> Tensor:
    T = len(b)
    columns = math.isqrt(T - 1) + 1
    rows = -(-T // columns)
    left = rows * columns - T
    if left:  # steps behind the last, which nobody reads
        a, b = (torch.cat([x, x.new_zeros(left, *x.shape[1:])]) for x in (a, b))
    a, b = a.unflatten(0, (rows, columns)), b.unflatten(0, (rows, columns))
    h, factor = [b[:, 0]], [a[:, 0]]
    for j in range(1, columns):
        h.append(torch.addcmul(b[:, j], a[:, j], h[-1]))
        factor.append(a[:, j] * factor[-1])
    states, factors, before = torch.stack(h, 1), torch.stack(factor, 1), [h0]
    for i in range(rows - 1):
        before.append(torch.addcmul(states[i, -1], factors[i, -1], before[-1]))
    return torch.addcmul(states, factors, torch.stack(before)[:, None]).flatten(0, 1)[:T]
