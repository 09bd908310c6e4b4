"""The gated recurrent unit, one sequence per program; gpu/gru.py says what is saved."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportAssignmentType=false, reportGeneralTypeIssues=false

import triton
import triton.language as tl

from orthobench.scan.triton.gates import (
    add_product,
    add_signed,
    reverse_gate,
    reverse_update,
    sigmoid,
    times,
    update,
    zeros,
)
from orthobench.scan.triton.rows import (
    hold_tiles,
    outer_end,
    read_last,
    read_row,
    row_kernel,
    row_product,
    write_row,
)


@triton.jit
def candidate(
    p_r,
    p_c,
    b_k,
    h,
    W,
    held,
    gates,
    recalled,
    SHAPE: tl.constexpr,
    RESET: tl.constexpr,
    KEPT: tl.constexpr,
):
    """The sum that the candidate's activation takes; the reset gate, and what it resets, are kept."""
    TILES: tl.constexpr = SHAPE.TILES
    if RESET == "none":
        z = row_product(p_c, h, W, held, 1, SHAPE)
    else:
        r = sigmoid(row_product(p_r, h, W, held, 0, SHAPE), TILES)
        if KEPT:
            write_row(gates, r, SHAPE)
        if RESET == "after":
            k = row_product(b_k, h, W, held, 2, SHAPE)
            if KEPT:
                write_row(recalled, k, SHAPE)
            z = add_product(p_c, r, k, TILES)
        else:
            z = row_product(p_c, times(r, h, TILES), W, held, 2, SHAPE)
    return z


@triton.jit
def reverse_candidate(
    old,
    dz_c,
    h,
    W,
    held,
    gates,
    recalled,
    dP,
    SHAPE: tl.constexpr,
    RESET: tl.constexpr,
):
    """`old` with what reaches h_{t-1} through the candidate; the gradient of the reset gate is written."""
    TILES: tl.constexpr = SHAPE.TILES
    if RESET == "none":
        old = row_product(old, dz_c, W, held, 1, SHAPE)
    else:
        r = read_row(gates, True, SHAPE)
        if RESET == "after":
            k = read_row(recalled, True, SHAPE)
            dz_r = reverse_gate(dz_c, k, r, TILES)
            old = row_product(old, times(dz_c, r, TILES), W, held, 2, SHAPE)
        else:
            s = row_product(zeros(old, TILES), dz_c, W, held, 2, SHAPE)
            dz_r = reverse_gate(s, h, r, TILES)
            old = add_product(old, s, r, TILES)
        write_row(dP, dz_r, SHAPE)
        old = row_product(old, dz_r, W, held, 0, SHAPE)
    return old


@row_kernel
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
    SHAPE: tl.constexpr,
    ACTIVATION: tl.constexpr,
    SLOPE: tl.constexpr,
    RESET: tl.constexpr,
    LATE: tl.constexpr,
    KEPT: tl.constexpr,
):
    """h_t for all t; the projections of step t + 1 are loaded while step t is computed."""
    N: tl.constexpr = SHAPE.N
    TILES: tl.constexpr = SHAPE.TILES
    G: tl.constexpr = 2 if RESET == "none" else 3
    M: tl.constexpr = G * N
    member, row = tl.program_id(0).to(tl.int64), tl.program_id(1)
    step = B.to(tl.int64) * N
    P += member * T * G * step + row * M
    H += member * (T + 1) * step + row * N
    W += member * M * N
    held = hold_tiles(W, SHAPE)
    p_r, p_u = read_row(P, T > 0, SHAPE), read_row(P + M - 2 * N, T > 0, SHAPE)
    p_c, h = read_row(P + M - N, T > 0, SHAPE), read_row(H, True, SHAPE)
    b = read_row(bias + member * N if ACTIVATION == "modrelu" else H, ACTIVATION == "modrelu", SHAPE)
    b_k = read_row(late + member * N if LATE else H, LATE, SHAPE)
    if KEPT:
        gates += member * T * G * step + row * M
        if RESET == "after":
            recalled += member * T * step + row * N
    for t in range(T):
        P += G * step
        H += step
        more = t + 1 < T
        next_r, next_u = read_row(P, more, SHAPE), read_row(P + M - 2 * N, more, SHAPE)
        next_c = read_row(P + M - N, more, SHAPE)
        u = sigmoid(row_product(p_u, h, W, held, G - 2, SHAPE), TILES)
        z = candidate(p_r, p_c, b_k, h, W, held, gates, recalled, SHAPE, RESET, KEPT)
        c, new = update(z, u, h, b, ACTIVATION, SLOPE, TILES)
        if KEPT:
            write_row(gates + M - 2 * N, u, SHAPE)
            write_row(gates + M - N, c, SHAPE)
            gates += G * step
            if RESET == "after":
                recalled += step
        write_row(H, new, SHAPE)
        p_r, p_u, p_c, h = next_r, next_u, next_c, new


@row_kernel
def gru_backward(
    dH,
    dlast,
    W,
    H,
    gates,
    recalled,
    dP,
    G0,
    dbias,
    T,
    B,
    SHAPE: tl.constexpr,
    ACTIVATION: tl.constexpr,
    SLOPE: tl.constexpr,
    RESET: tl.constexpr,
    OUTSIDE: tl.constexpr,
):
    """dz_t of every gate for all t from last to first, dL/dh_0, and the row's part of db."""
    N: tl.constexpr = SHAPE.N
    TILES: tl.constexpr = SHAPE.TILES
    COUNT: tl.constexpr = 2 if RESET == "none" else 3
    M: tl.constexpr = COUNT * N
    member, row = tl.program_id(0).to(tl.int64), tl.program_id(1)
    step = B.to(tl.int64) * N
    first, end = member * step + row * N, (member + 1) * T * step
    H += (member * (T + 1) + T) * step + row * N
    dH, more = outer_end(dH if OUTSIDE else H, member, step, row * N, T, OUTSIDE)
    gates += COUNT * end + row * M
    dP += COUNT * end + row * M
    W += member * M * N
    held = hold_tiles(W, SHAPE)
    G = read_last(dH, dlast + first, more, SHAPE)
    db = zeros(G, TILES)
    if RESET == "after":
        recalled += end + row * N
    for t in range(T):
        dH -= step
        H -= step
        gates -= COUNT * step
        dP -= COUNT * step
        h, outside = read_row(H, True, SHAPE), read_row(dH, t + 1 < more, SHAPE)
        u, c = read_row(gates + M - 2 * N, True, SHAPE), read_row(gates + M - N, True, SHAPE)
        dz_u, dz_c, old = reverse_update(G, outside, h, u, c, ACTIVATION, SLOPE, TILES)
        if ACTIVATION == "modrelu":
            db = add_signed(db, dz_c, c, TILES)
        write_row(dP + M - 2 * N, dz_u, SHAPE)
        write_row(dP + M - N, dz_c, SHAPE)
        if RESET == "after":
            recalled -= step
        old = reverse_candidate(old, dz_c, h, W, held, gates, recalled, dP, SHAPE, RESET)
        G = row_product(old, dz_u, W, held, COUNT - 2, SHAPE)
    write_row(G0 + first, G, SHAPE)
    if ACTIVATION == "modrelu":
        write_row(dbias + first, db, SHAPE)
