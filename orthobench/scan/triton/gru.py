"""The gated recurrent unit in one kernel each way; fused/gru.py has the equations, elman.py says what S and H are.

The kernels here compute sixteen sequences per program, those of `gru_rows.py` one.

Gates, projections and matrices are each stored as G blocks in the order r, u, c; without a reset G = 2 and r is left
out. It saves the states, the gates, and k = W_c h + b_k where the reset comes after the product.
"""

# pyright: reportMissingImports=false, reportOperatorIssue=false, reportAttributeAccessIssue=false, reportAssignmentType=false, reportGeneralTypeIssues=false

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from orthobench.cells.base import State
from orthobench.parametrizations.derivatives import first_only
from orthobench.scan.triton.gates import add_product, reverse_gate, reverse_update, sigmoid, times, update, zeros
from orthobench.scan.triton.gru_rows import gru_row_backward, gru_row_forward
from orthobench.scan.triton.kernels import ROWS, hold, product, read_bias, read_rows, write_rows
from orthobench.scan.triton.launch import Members, contiguous, form_of, launch, outer


def run(cell: Any, x: Tensor, state: State) -> tuple[Tensor, State]:
    """Run a `GRU` cell over x from `state`; see `reference.run`."""
    W = torch.stack(cell.matrices())
    p = cell.project(x).to(W.dtype)
    b = cell.b["c"][None] if "c" in cell.inside else None
    b_k = cell.b_hidden["c"][None] if "c" in cell.late and "c" in cell.b_hidden else None
    h0 = state[0].to(W.dtype).expand(p.shape[1], W.shape[-1])
    settings = cell.activation, cell.negative_slope, cell.reset, torch.is_grad_enabled()
    H, _, _ = TritonGRU.apply(p[None], W[None], b, b_k, h0[None], *settings)
    return H[0, 1:].transpose(0, 1), (H[0, -1],)


class TritonGRU(Members, torch.autograd.Function):
    """(p_STBM, W_SGNN, b_SN, b_k_SN, h0_SBN, activation, slope, reset, training) -> (H, gates, K) with M = G N.

    b is modReLU's bias, b_k the bias that r multiplies; each is null where the cell has none. Gates and K are null
    where there is no backward pass, unless `training`.
    """

    @staticmethod
    def forward(
        p: Tensor,
        W: Tensor,
        b: Tensor | None,
        b_k: Tensor | None,
        h0: Tensor,
        activation: str,
        slope: float,
        reset: str,
        training: bool,
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        (S, T, B, _), (G, N) = p.shape, W.shape[1:3]
        H, gates = p.new_empty(S, T + 1, B, N), p.new_empty(p.shape) if training else None
        H[:, 0] = h0
        K = p.new_empty(S, T, B, N) if training and reset == "after" else None
        form = form_of("gru", (S, T, B, N), p)
        M = W.mT if form == "rows" else W
        tensors = (p.contiguous(), M.contiguous(), contiguous(b), contiguous(b_k), H, gates, K)
        key = {"ACTIVATION": activation, "SLOPE": slope, "RESET": reset, "LATE": b_k is not None, "KEPT": training}
        launch(gru_row_forward if form == "rows" else gru_forward, tensors, (S, T, B, N), G, form, **key)
        return H, gates, K

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor | None, ...]) -> None:
        _, W, _, _, _, *ctx.settings, _ = inputs
        H, gates, K = output
        ctx.mark_non_differentiable(*(x for x in (gates, K) if x is not None))
        ctx.save_for_backward(H, gates, K, W)

    @staticmethod
    @first_only("use engine=reference")
    def backward(ctx: Any, dH: Tensor, *_: Any) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        H, gates, K, W = ctx.saved_tensors
        activation, slope, reset = ctx.settings
        (S, T, B, _), (count, N) = gates.shape, W.shape[1:3]
        dp, G = torch.empty_like(gates), H.new_empty(S, B, N)
        tensors = (dH.contiguous(), W.contiguous(), H, gates, K, dp, G)
        key = {"ACTIVATION": activation, "SLOPE": slope, "RESET": reset}
        form = form_of("gru", (S, T, B, N), H)
        launch(gru_row_backward if form == "rows" else gru_backward, tensors, (S, T, B, N), count, form, **key)
        needed, dz_c, h, dW = ctx.needs_input_grad, dp[..., -N:], H[:, :-1], None
        dk = dz_c * gates[..., :N] if reset == "after" and (needed[1] or needed[3]) else dz_c
        if needed[1]:
            dW_c = outer(dk, gates[..., :N] * h if reset == "before" else h)
            dW = torch.cat([outer(dp[..., :-N], h).unflatten(1, (-1, N)), dW_c[:, None]], 1)
        db = (dz_c * gates[..., -N:].sign()).sum((1, 2)) if needed[2] else None
        return dp, dW, db, dk.sum((1, 2)) if needed[3] else None, G, None, None, None, None


@triton.jit(do_not_specialize=["T", "B"])
def gru_forward(
    P,
    W,
    bias,
    late,
    H,
    gates,
    recalled,
    T,
    B,
    N: tl.constexpr,
    K: tl.constexpr,
    TILES: tl.constexpr,
    HELD: tl.constexpr,
    ACTIVATION: tl.constexpr,
    SLOPE: tl.constexpr,
    RESET: tl.constexpr,
    LATE: tl.constexpr,
    KEPT: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """h_t for all t; the projections of step t + 1 are loaded while step t is computed."""
    G: tl.constexpr = 2 if RESET == "none" else 3
    M: tl.constexpr = G * N
    member = tl.program_id(0).to(tl.int64)
    rows = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    inside, step = rows < B, B.to(tl.int64) * N
    P += member * T * G * step
    H += member * (T + 1) * step
    W += member * M * N
    held = hold(W, N, K, TILES, HELD, True, PRECISION)
    p_r = read_rows(P, rows, inside, M, N, K, TILES)
    p_u = read_rows(P + M - 2 * N, rows, inside, M, N, K, TILES)
    p_c = read_rows(P + M - N, rows, inside, M, N, K, TILES)
    h = read_rows(H, rows, inside, N, N, K, TILES)
    b = read_bias(bias + member * N if ACTIVATION == "modrelu" else W, h, N, K, TILES, ACTIVATION == "modrelu")
    b_k = read_bias(late + member * N if LATE else W, h, N, K, TILES, LATE)
    if KEPT:
        gates += member * T * G * step
        if RESET == "after":
            recalled += member * T * step
    for t in range(T):
        P += G * step
        H += step
        more = inside & (t + 1 < T)
        next_r = read_rows(P, rows, more, M, N, K, TILES)
        next_u = read_rows(P + M - 2 * N, rows, more, M, N, K, TILES)
        next_c = read_rows(P + M - N, rows, more, M, N, K, TILES)
        u = sigmoid(product(p_u, h, W, held, G - 2, N, K, TILES, HELD, True, PRECISION), TILES)
        if RESET == "none":
            z = product(p_c, h, W, held, G - 1, N, K, TILES, HELD, True, PRECISION)
        else:
            r = sigmoid(product(p_r, h, W, held, 0, N, K, TILES, HELD, True, PRECISION), TILES)
            if KEPT:
                write_rows(gates, r, rows, inside, M, N, K, TILES)
            if RESET == "after":
                k = product(b_k, h, W, held, G - 1, N, K, TILES, HELD, True, PRECISION)
                if KEPT:
                    write_rows(recalled, k, rows, inside, N, N, K, TILES)
                    recalled += step
                z = add_product(p_c, r, k, TILES)
            else:
                z = product(p_c, times(r, h, TILES), W, held, G - 1, N, K, TILES, HELD, True, PRECISION)
        c, new = update(z, u, h, b, ACTIVATION, SLOPE, TILES)
        if KEPT:
            write_rows(gates + M - 2 * N, u, rows, inside, M, N, K, TILES)
            write_rows(gates + M - N, c, rows, inside, M, N, K, TILES)
            gates += G * step
        write_rows(H, new, rows, inside, N, N, K, TILES)
        p_r, p_u, p_c, h = next_r, next_u, next_c, new


@triton.jit(do_not_specialize=["T", "B"])
def gru_backward(
    dH,
    W,
    H,
    gates,
    recalled,
    dP,
    G0,
    T,
    B,
    N: tl.constexpr,
    K: tl.constexpr,
    TILES: tl.constexpr,
    HELD: tl.constexpr,
    ACTIVATION: tl.constexpr,
    SLOPE: tl.constexpr,
    RESET: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """dz_t of every gate for all t from last to first, and dL/dh_0."""
    COUNT: tl.constexpr = 2 if RESET == "none" else 3
    M: tl.constexpr = COUNT * N
    member = tl.program_id(0).to(tl.int64)
    rows = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    inside, step = rows < B, B.to(tl.int64) * N
    last = (member * (T + 1) + T) * step
    dH += last
    H += last
    end = (member + 1) * T * step
    gates += COUNT * end
    dP += COUNT * end
    W += member * M * N
    held = hold(W, N, K, TILES, HELD, False, PRECISION)
    G = read_rows(dH, rows, inside, N, N, K, TILES)
    if RESET == "after":
        recalled += end
    for _ in range(T):
        dH -= step
        H -= step
        gates -= COUNT * step
        dP -= COUNT * step
        h = read_rows(H, rows, inside, N, N, K, TILES)
        u = read_rows(gates + M - 2 * N, rows, inside, M, N, K, TILES)
        c = read_rows(gates + M - N, rows, inside, M, N, K, TILES)
        outside = read_rows(dH, rows, inside, N, N, K, TILES)
        dz_u, dz_c, old = reverse_update(G, outside, h, u, c, ACTIVATION, SLOPE, TILES)
        write_rows(dP + M - 2 * N, dz_u, rows, inside, M, N, K, TILES)
        write_rows(dP + M - N, dz_c, rows, inside, M, N, K, TILES)
        if RESET == "none":
            old = product(old, dz_c, W, held, COUNT - 1, N, K, TILES, HELD, False, PRECISION)
        else:
            r = read_rows(gates, rows, inside, M, N, K, TILES)
            if RESET == "after":
                recalled -= step
                k = read_rows(recalled, rows, inside, N, N, K, TILES)
                dz_r = reverse_gate(dz_c, k, r, TILES)
                old = product(old, times(dz_c, r, TILES), W, held, COUNT - 1, N, K, TILES, HELD, False, PRECISION)
            else:
                s = product(zeros(old, TILES), dz_c, W, held, COUNT - 1, N, K, TILES, HELD, False, PRECISION)
                dz_r = reverse_gate(s, h, r, TILES)
                old = add_product(old, s, r, TILES)
            write_rows(dP, dz_r, rows, inside, M, N, K, TILES)
            old = product(old, dz_r, W, held, 0, N, K, TILES, HELD, False, PRECISION)
        G = product(old, dz_u, W, held, COUNT - 2, N, K, TILES, HELD, False, PRECISION)
    write_rows(G0 + member * step, G, rows, inside, N, N, K, TILES)
