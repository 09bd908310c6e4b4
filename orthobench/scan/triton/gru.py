"""The gated recurrent unit, one sequence per program; gpu/gru.py says what is saved."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportAssignmentType=false

import triton
import triton.language as tl

from orthobench.scan.triton.gates import add_product, reverse_gate, reverse_update, sigmoid, times, update, zeros
from orthobench.scan.triton.rows import hold_tiles, read_row, row_kernel, row_product, write_row


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
    N: tl.constexpr,
    K: tl.constexpr,
    TILES: tl.constexpr,
    HELD: tl.constexpr,
    RESET: tl.constexpr,
    KEPT: tl.constexpr,
):
    """The sum that the candidate's activation takes; the reset gate, and what it resets, are kept."""
    if RESET == "none":
        z = row_product(p_c, h, W, held, 1, N, K, TILES, HELD)
    else:
        r = sigmoid(row_product(p_r, h, W, held, 0, N, K, TILES, HELD), TILES)
        if KEPT:
            write_row(gates, r, N, K, TILES)
        if RESET == "after":
            k = row_product(b_k, h, W, held, 2, N, K, TILES, HELD)
            if KEPT:
                write_row(recalled, k, N, K, TILES)
            z = add_product(p_c, r, k, TILES)
        else:
            z = row_product(p_c, times(r, h, TILES), W, held, 2, N, K, TILES, HELD)
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
    N: tl.constexpr,
    K: tl.constexpr,
    TILES: tl.constexpr,
    HELD: tl.constexpr,
    RESET: tl.constexpr,
):
    """`old` with what reaches h_{t-1} through the candidate; the gradient of the reset gate is written."""
    if RESET == "none":
        old = row_product(old, dz_c, W, held, 1, N, K, TILES, HELD)
    else:
        r = read_row(gates, True, N, K, TILES)
        if RESET == "after":
            k = read_row(recalled, True, N, K, TILES)
            dz_r = reverse_gate(dz_c, k, r, TILES)
            old = row_product(old, times(dz_c, r, TILES), W, held, 2, N, K, TILES, HELD)
        else:
            s = row_product(zeros(old, TILES), dz_c, W, held, 2, N, K, TILES, HELD)
            dz_r = reverse_gate(s, h, r, TILES)
            old = add_product(old, s, r, TILES)
        write_row(dP, dz_r, N, K, TILES)
        old = row_product(old, dz_r, W, held, 0, N, K, TILES, HELD)
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
    N: tl.constexpr,
    K: tl.constexpr,
    TILES: tl.constexpr,
    HELD: tl.constexpr,
    ACTIVATION: tl.constexpr,
    SLOPE: tl.constexpr,
    RESET: tl.constexpr,
    LATE: tl.constexpr,
    KEPT: tl.constexpr,
):
    """h_t for all t; the projections of step t + 1 are loaded while step t is computed."""
    G: tl.constexpr = 2 if RESET == "none" else 3
    M: tl.constexpr = G * N
    member, row = tl.program_id(0).to(tl.int64), tl.program_id(1)
    step = B.to(tl.int64) * N
    P += member * T * G * step + row * M
    H += member * (T + 1) * step + row * N
    W += member * M * N
    held = hold_tiles(W, N, K, TILES, HELD)
    p_r, p_u = read_row(P, T > 0, N, K, TILES), read_row(P + M - 2 * N, T > 0, N, K, TILES)
    p_c, h = read_row(P + M - N, T > 0, N, K, TILES), read_row(H, True, N, K, TILES)
    b = read_row(bias + member * N if ACTIVATION == "modrelu" else H, ACTIVATION == "modrelu", N, K, TILES)
    b_k = read_row(late + member * N if LATE else H, LATE, N, K, TILES)
    if KEPT:
        gates += member * T * G * step + row * M
        if RESET == "after":
            recalled += member * T * step + row * N
    for t in range(T):
        P += G * step
        H += step
        more = t + 1 < T
        next_r, next_u = read_row(P, more, N, K, TILES), read_row(P + M - 2 * N, more, N, K, TILES)
        next_c = read_row(P + M - N, more, N, K, TILES)
        u = sigmoid(row_product(p_u, h, W, held, G - 2, N, K, TILES, HELD), TILES)
        z = candidate(p_r, p_c, b_k, h, W, held, gates, recalled, N, K, TILES, HELD, RESET, KEPT)
        c, new = update(z, u, h, b, ACTIVATION, SLOPE, TILES)
        if KEPT:
            write_row(gates + M - 2 * N, u, N, K, TILES)
            write_row(gates + M - N, c, N, K, TILES)
            gates += G * step
            if RESET == "after":
                recalled += step
        write_row(H, new, N, K, TILES)
        p_r, p_u, p_c, h = next_r, next_u, next_c, new


@row_kernel
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
):
    """dz_t of every gate for all t from last to first, and dL/dh_0."""
    COUNT: tl.constexpr = 2 if RESET == "none" else 3
    M: tl.constexpr = COUNT * N
    member, row = tl.program_id(0).to(tl.int64), tl.program_id(1)
    step = B.to(tl.int64) * N
    last = (member * (T + 1) + T) * step + row * N
    dH += last
    H += last
    end = (member + 1) * T * step
    gates += COUNT * end + row * M
    dP += COUNT * end + row * M
    W += member * M * N
    held = hold_tiles(W, N, K, TILES, HELD)
    G = read_row(dH, True, N, K, TILES)
    if RESET == "after":
        recalled += end + row * N
    for _ in range(T):
        dH -= step
        H -= step
        gates -= COUNT * step
        dP -= COUNT * step
        h, outside = read_row(H, True, N, K, TILES), read_row(dH, True, N, K, TILES)
        u, c = read_row(gates + M - 2 * N, True, N, K, TILES), read_row(gates + M - N, True, N, K, TILES)
        dz_u, dz_c, old = reverse_update(G, outside, h, u, c, ACTIVATION, SLOPE, TILES)
        write_row(dP + M - 2 * N, dz_u, N, K, TILES)
        write_row(dP + M - N, dz_c, N, K, TILES)
        if RESET == "after":
            recalled -= step
        old = reverse_candidate(old, dz_c, h, W, held, gates, recalled, dP, N, K, TILES, HELD, RESET)
        G = row_product(old, dz_u, W, held, COUNT - 2, N, K, TILES, HELD)
    write_row(G0 + member * step + row * N, G, N, K, TILES)
