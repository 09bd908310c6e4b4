"""sLSTM in C; cells/slstm.py has the equations.

i stands for i_t / exp(m_t) here, and f for f_t exp(m_{t-1}) / exp(m_t). With v = tanh(z_c), G = dL/dh_t, and C, D and M
the parts of dL/dc_t, dL/dn_t and dL/dm_t that come from step t + 1, one step of the backward pass is

    C <- C + G o / n_t,   D <- D - G h_t / n_t,   k = f (C c_{t-1} + D n_{t-1}),   e = i (C v + D),   r = M - k - e
    dz_i = e + (1 - s) r,   M <- k + s r,   dz_f = M (1 - sigmoid(z_f)),   dz_c = C i (1 - v^2),   dz_o = G h_t (1 - o)
    C <- f C,   D <- f D,   G <- R^T dz + what comes from outside

where s is one if the forget gate set m_t, zero if the input gate did, and a half if both. Where nothing but hidden
states is used, r is zero but for rounding.
"""

from typing import Any

import torch
from torch import Tensor

from orthobench.cells.base import State
from orthobench.parametrizations.derivatives import first_only
from orthobench.scan.arguments import first_states
from orthobench.scan.fused.elman import Gradients, first_gradient
from orthobench.scan.native.checks import check
from orthobench.scan.native.convolution import convolve
from orthobench.scan.native.library import Struct, add_outer, long, pack, pointer, readable
from orthobench.scan.native.projection import own_projection
from orthobench.scan.reference import projected

GATES = 4


class ExponentialScan(Struct):
    """The struct of the same name in slstm.c."""

    apart = frozenset(("dH",))
    _fields_ = (
        *((name, long) for name in ("T", "B", "N", "heads", "dH_time", "dH_row")),
        *((name, pointer) for name in ("P", "H", "C", "count", "m", "shut", "R", "dH", "dZ", "G", "dC", "dn", "dm")),
    )


def run(cell: Any, x: Tensor, state: State) -> tuple[Tensor, State]:
    """Run an `SLSTM` cell over x from `state`; see `reference.run`."""
    (R,), N, d, before = cell.matrices(), cell.hidden_size, cell.width, state[4:]
    if before:
        p, before = _convolved(cell, x, before[0])
    else:
        p = own_projection(cell, x, R.dtype)
    check(p, R, (cell.heads, d, GATES * d), GATES * N)
    h_TBN, *last = SLSTMScan.apply(p, R, *first_states(state[:4], p, N))
    return h_TBN.transpose(0, 1), (*last, *before)


def _convolved(cell: Any, x: Tensor, before: Tensor) -> tuple[Tensor, tuple[Tensor]]:
    """The projection (T, B, 4N) where the gates i and f read a convolution of x, and the last inputs of that."""
    p_TBM = projected(cell, x, ())
    with torch.autocast(x.device.type, enabled=False):
        rest, x_TBI = p_TBM.split([2 * cell.hidden_size, cell.input_size], dim=-1)
        y_BTI, before = convolve(x_TBI.transpose(0, 1), before.expand(p_TBM.shape[1], *before.shape[1:]), cell.kernel)
        return torch.cat([cell.seen(y_BTI).transpose(0, 1), rest], dim=-1), (before,)


class SLSTMScan(torch.autograd.Function):
    """(p_TBM, R, h_0, c_0, n_0, m_0) -> (h_TBN, h_T, c_T, n_T, m_T), M = 4N, R (heads, d, 4d); gates overwrite p."""

    @staticmethod
    def forward(ctx: Any, p_TBM: Tensor, R: Tensor, *state: Tensor) -> tuple[Tensor, ...]:
        P, heads = p_TBM.data, len(R)
        T, B, N = len(P), *state[0].shape
        states = [P.new_empty(T + 1, B, N) for _ in range(3)]
        for all_steps, first in zip(states, state, strict=False):
            all_steps[0] = first
        H, C, count = states
        m, shut = state[3].clone(), P.new_empty(T, B, N)
        scan = ExponentialScan(T, B, N, heads)
        scan.run("slstm_forward", B, P, P=P, H=H, C=C, count=count, m=m, shut=shut, R=_packed(R))
        ctx.set_materialize_grads(False)
        h_TBN = H[1:]
        ctx.save_for_backward(*states, P, shut, R, h_TBN)  # the last because it is an output, as derivatives ask for
        return h_TBN, H[-1].clone(), C[-1].clone(), count[-1].clone(), m

    @staticmethod
    @first_only("use engine=reference")
    def backward(ctx: Any, dH: Tensor | None, *d_last: Tensor | None) -> Gradients:  # type: ignore[override]
        H, C, count, P, shut, R, h_TBN = ctx.saved_tensors
        dH, dP = readable(dH), torch.empty_like(P)
        G, dC, dn, dm = (first_gradient(h_TBN, None if i else dH, last) for i, last in enumerate(d_last))
        given = {"P": P, "H": H, "C": C, "count": count, "shut": shut, "R": _packed(R, transposed=True)}
        T, B, N = h_TBN.shape
        scan = ExponentialScan(T, B, N, len(R))
        scan.run("slstm_backward", B, P, dH=dH, dZ=dP, G=G, dC=dC, dn=dn, dm=dm, **given)
        return dP, _matrix_gradient(dP, H, len(R)), G, dC, dn, dm


def _packed(R: Tensor, transposed: bool = False) -> Tensor:
    """Every head's (d, d) block of every gate, packed one after another, the gates outermost."""
    blocks = (block for gate in R.chunk(GATES, dim=-1) for block in gate)
    return torch.cat([pack(block.T if transposed else block) for block in blocks])


def _matrix_gradient(dP: Tensor, H: Tensor, heads: int) -> Tensor:
    """The gradient of R, (heads, d, 4d): of every head the sum over all steps of h_{t-1} times dz_t."""
    before = H[:-1].chunk(heads, dim=-1)
    d = before[0].shape[-1]
    dR = H.new_zeros(GATES * heads, d, d)
    for part, dz in enumerate(dP.split(d, dim=-1)):
        add_outer(dz, before[part % heads], dR[part])
    return dR.unflatten(0, (GATES, heads)).permute(1, 3, 0, 2).flatten(2)
