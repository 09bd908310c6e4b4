"""The Elman and the scalar-gated recurrence in one kernel each way; fused/elman.py has the equations.

The kernels here compute sixteen sequences per program, those of `elman_rows.py` one; `costs.py` tells which are taken.

Shapes have a leading axis S of members, each with a matrix of its own; a single run has one member. H holds h_0 and all
states after it, so that one product over all steps gives dW. Where the backward pass cannot be computed from the states
(behind a gate, and for the activation abs), A holds what it needs.
"""

# pyright: reportMissingImports=false, reportOperatorIssue=false, reportAttributeAccessIssue=false, reportGeneralTypeIssues=false

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from orthobench.cells.base import State
from orthobench.parametrizations.derivatives import first_only
from orthobench.scan.arguments import elman, scaled
from orthobench.scan.triton.elman_rows import elman_row_backward, elman_row_forward
from orthobench.scan.triton.kernels import (
    ROWS,
    derivative,
    hold,
    kept,
    product,
    read_bias,
    read_rows,
    value,
    write_rows,
)
from orthobench.scan.triton.launch import Members, contiguous, form_of, launch, outer


def run(cell: Any, x: Tensor, state: State) -> tuple[Tensor, State]:
    """Run an `Elman` or `ScalarGated` cell over x from `state`; see `reference.run`."""
    arguments, outside = elman(cell, x, state)
    members = (None if tensor is None else tensor[None] for tensor in arguments)
    H, _ = TritonElman.apply(*members, cell.activation, cell.negative_slope, torch.is_grad_enabled())
    return scaled(H[0, 1:].transpose(0, 1), H[0, -1], outside)


class TritonElman(Members, torch.autograd.Function):
    """(p_STBN, W_SNN, b_SN, h0_SBN, beta_S, activation, slope, training) -> (H, A), H (S, T + 1, B, N) from h_0 on.

    A is null where it equals H, and where there is no backward pass, unless `training`.
    """

    @staticmethod
    def forward(
        p: Tensor,
        W: Tensor,
        b: Tensor | None,
        h0: Tensor,
        beta: Tensor | None,
        activation: str,
        slope: float,
        training: bool,
    ) -> tuple[Tensor, Tensor | None]:
        S, T, B, N = p.shape
        H = p.new_empty(S, T + 1, B, N)
        H[:, 0] = h0
        A = torch.empty_like(H) if training and (beta is not None or activation == "abs") else None
        form = form_of("elman", (S, T, B, N), p)
        M = W.mT if form == "rows" else W
        tensors = (p.contiguous(), M.contiguous(), contiguous(b), contiguous(beta), H, A)
        key = {"ACTIVATION": activation, "SLOPE": slope, "GATED": beta is not None, "KEPT": A is not None}
        kernel = elman_row_forward if form == "rows" else elman_forward
        launch(kernel, tensors, (S, T, B, N), 1, form, **key)
        return H, A

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor | None]) -> None:
        _, W, _, _, beta, ctx.activation, ctx.slope, _ = inputs
        H, A = output
        if A is not None:
            ctx.mark_non_differentiable(A)
        ctx.save_for_backward(H, A, W, beta)

    @staticmethod
    @first_only("use engine=reference")
    def backward(ctx: Any, dH: Tensor, _: Tensor | None) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        H, A, W, beta = ctx.saved_tensors
        S, T, B, N = H[:, 1:].shape
        dp, G = H.new_empty(S, T, B, N), H.new_empty(S, B, N)
        dbeta = None if beta is None else H.new_empty(S, B)
        tensors = (dH.contiguous(), W.contiguous(), contiguous(beta), H, A, dp, G, dbeta)
        key = {"ACTIVATION": ctx.activation, "SLOPE": ctx.slope, "GATED": beta is not None}
        form = form_of("elman", (S, T, B, N), H)
        kernel = elman_row_backward if form == "rows" else elman_backward
        launch(kernel, tensors, (S, T, B, N), 1, form, **key)
        needed = ctx.needs_input_grad
        dW = outer(dp, H[:, :-1]) if needed[1] else None
        db = (dp * (H if A is None else A)[:, 1:].sign()).sum((1, 2)) if needed[2] else None
        return dp, dW, db, G, None if dbeta is None else dbeta.sum(-1), None, None, None


@triton.jit(do_not_specialize=["T", "B"])
def elman_forward(
    P,
    W,
    bias,
    betas,
    H,
    A,
    T,
    B,
    N: tl.constexpr,
    K: tl.constexpr,
    TILES: tl.constexpr,
    HELD: tl.constexpr,
    ACTIVATION: tl.constexpr,
    SLOPE: tl.constexpr,
    GATED: tl.constexpr,
    KEPT: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """h_t for all t; p_{t+1} is loaded while step t is computed."""
    member = tl.program_id(0).to(tl.int64)
    rows = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    inside, step = rows < B, B.to(tl.int64) * N
    P += member * T * step
    H += member * (T + 1) * step
    W += member * N * N
    held = hold(W, N, K, TILES, HELD, True, PRECISION)
    p = read_rows(P, rows, inside, N, N, K, TILES)
    h = read_rows(H, rows, inside, N, N, K, TILES)
    b = read_bias(bias + member * N if ACTIVATION == "modrelu" else W, p, N, K, TILES, ACTIVATION == "modrelu")
    if KEPT:
        A += member * (T + 1) * step
    if GATED:
        beta = tl.load(betas + member)
    for t in range(T):
        P += step
        H += step
        following = read_rows(P, rows, inside & (t + 1 < T), N, N, K, TILES)
        z = product(p, h, W, held, 0, N, K, TILES, HELD, True, PRECISION)
        a, new = (), ()
        for j in tl.static_range(TILES):
            a_j = kept(z[j], b[j], ACTIVATION, SLOPE)
            h_j = value(a_j, ACTIVATION)
            if GATED:
                h_j += beta * h[j]
            a, new = a + (a_j,), new + (h_j,)
        if KEPT:
            A += step
            write_rows(A, a, rows, inside, N, N, K, TILES)
        write_rows(H, new, rows, inside, N, N, K, TILES)
        p, h = following, new


@triton.jit(do_not_specialize=["T", "B"])
def elman_backward(
    dH,
    W,
    betas,
    H,
    A,
    dP,
    G0,
    dbetas,
    T,
    B,
    N: tl.constexpr,
    K: tl.constexpr,
    TILES: tl.constexpr,
    HELD: tl.constexpr,
    ACTIVATION: tl.constexpr,
    SLOPE: tl.constexpr,
    GATED: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """dz_t for all t from last to first, dL/dh_0, and the part of dbeta that each row of the batch contributes."""
    member = tl.program_id(0).to(tl.int64)
    rows = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    inside, step = rows < B, B.to(tl.int64) * N
    last = (member * (T + 1) + T) * step
    dH += last
    H += last
    A = A + last if GATED or ACTIVATION == "abs" else H
    dP += (member + 1) * T * step
    W += member * N * N
    held = hold(W, N, K, TILES, HELD, False, PRECISION)
    G = read_rows(dH, rows, inside, N, N, K, TILES)
    a = read_rows(A, rows, inside, N, N, K, TILES)
    if GATED:
        beta, dbeta = tl.load(betas + member), tl.sum(tl.zeros_like(G[0]), axis=1)
    for t in range(T):
        dH -= step
        H -= step
        A -= step
        dP -= step
        outside = read_rows(dH, rows, inside, N, N, K, TILES)
        preceding = read_rows(A, rows, inside & (t + 1 < T), N, N, K, TILES)
        if GATED:
            h = read_rows(H, rows, inside, N, N, K, TILES)
        dz, carried = (), ()
        for j in tl.static_range(TILES):
            dz_j = G[j] * derivative(a[j], ACTIVATION, SLOPE)
            g_j = outside[j]
            if GATED:
                dbeta += tl.sum(G[j] * h[j], axis=1)
                g_j += beta * G[j]
            dz, carried = dz + (dz_j,), carried + (g_j,)
        write_rows(dP, dz, rows, inside, N, N, K, TILES)
        G = product(carried, dz, W, held, 0, N, K, TILES, HELD, False, PRECISION)
        a = preceding
    write_rows(G0 + member * step, G, rows, inside, N, N, K, TILES)
    if GATED:
        tl.store(dbetas + member * B + rows, dbeta, mask=inside)
