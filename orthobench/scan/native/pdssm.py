"""PD-SSM in C; cells/pdssm.py has the equations.

With g = dL/dh_t, u = D_t h_{t-1} and products of complex numbers as of pairs, dL/dP_ij = g_i . u_j is the gradient of
softmax. By rows it is dL/dP_ij = (conj(D_i) g_i) . h_j. The mixed dictionary, N^2 numbers a step, is never kept.
"""

from typing import Any

import torch
from torch import Tensor

from orthobench.cells.base import State
from orthobench.parametrizations.derivatives import first_only
from orthobench.scan.fused.elman import Gradients
from orthobench.scan.native.library import SMALLEST_SHARE, Struct, long, pointer, with_rows
from orthobench.scan.reference import projected


class Moves(Struct):
    """The struct of the same name in pdssm.c."""

    apart = frozenset(("P", "dP"))
    _fields_ = (
        *((name, long) for name in ("T", "B", "N", "K", "rows", "unit", "P_time", "P_row", "dP_time", "dP_row")),
        *((name, pointer) for name in ("plan", "P", "M", "dM", "h0", "H", "dH", "G", "dP")),
    )


def run(cell: Any, x: Tensor, state: State) -> tuple[Tensor, State]:
    """Run a `PDSSM` cell over x from `state`; see `reference.run`.

    Raises:
        ValueError: a projection or a state that does not fit.
    """
    p_TBM, N, K = projected(cell, x, ()), cell.hidden_size, cell.sizes[0]
    if p_TBM.shape[-1] != K + 4 * N or cell.M.shape != (K, N, N):
        raise ValueError(
            f"a projection of width {p_TBM.shape[-1]} and a dictionary {tuple(cell.M.shape)} do not fit {N} units."
        )
    h0 = torch.view_as_real(state[0].expand(p_TBM.shape[1], N).resolve_conj().contiguous())
    H = torch.view_as_complex(MoveScan.apply(p_TBM, cell.M, h0, cell.selection == "rows"))
    return H, ((H[:, -1] if len(p_TBM) else torch.view_as_complex(h0)).clone(),)


def values_per_step(cell: Any) -> int:
    """Numbers kept at the peak of a backward pass, as `Cell.values_per_step`: projections and states alone."""
    return 2 * sum(cell.sizes) + 8 * cell.hidden_size


class MoveScan(torch.autograd.Function):
    """(shares, D and B x (T, B, K + 4 N), dictionary (K, N, N), h_0 (B, N, 2), by rows) -> h (B, T, N, 2)."""

    @staticmethod
    def forward(ctx: Any, p_TBM: Tensor, M: Tensor, h0: Tensor, rows: bool) -> Tensor:
        P, M, (T, B, _) = with_rows(p_TBM), M.resolve_neg().contiguous(), p_TBM.shape
        H, plan = P.new_empty(B, T, *h0.shape[1:]), torch.empty(B, T, h0.shape[1], dtype=torch.int64)
        _run("forward", P, M, rows, h0=h0, H=H, plan=plan)
        ctx.rows = rows
        ctx.save_for_backward(P, M, h0, H, plan)
        return H

    @staticmethod
    @first_only("use engine=reference")
    def backward(ctx: Any, dH: Tensor) -> Gradients:  # type: ignore[override]
        P, M, h0, H, plan = ctx.saved_tensors
        G, dP = torch.zeros_like(h0), torch.empty_like(P)
        dM = _run("backward", P, M, ctx.rows, h0=h0, H=H, plan=plan, dH=dH.contiguous(), G=G, dP=dP)
        return dP, dM, G, None


def _run(way: str, P: Tensor, M: Tensor, rows: bool, **tensors: Tensor) -> Tensor | None:
    """Call the loops for all sequences; the backward pass returns the dictionary's gradient.

    It is summed unit by unit of sequences, so that bits do not depend on the number of threads.
    """
    (T, B, _), (K, N, _), unit = P.shape, M.shape, SMALLEST_SHARE
    moves, count = Moves(T, B, N, K, int(rows), unit), -(-B // unit)
    dM = M.new_zeros(count, K, N, N) if way == "backward" else None
    moves.run(f"pdssm_{way}", count, P, moves.scratch("pdssm", way, P.dtype), P=P, M=M, dM=dM, **tensors)
    return None if dM is None else dM.sum(0)
