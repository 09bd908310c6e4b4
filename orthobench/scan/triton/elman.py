"""The Elman and the scalar-gated recurrence, one sequence per program."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportGeneralTypeIssues=false

import triton.language as tl

from orthobench.scan.triton.activations import derivative, kept, value
from orthobench.scan.triton.rows import hold_tiles, read_row, row_kernel, row_product, write_row


@row_kernel
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
):
    """h_t for all t; p_{t+1} is loaded while step t is computed."""
    member, row = tl.program_id(0).to(tl.int64), tl.program_id(1)
    step = B.to(tl.int64) * N
    P += member * T * step + row * N
    H += member * (T + 1) * step + row * N
    W += member * N * N
    held = hold_tiles(W, N, K, TILES, HELD)
    p, h = read_row(P, T > 0, N, K, TILES), read_row(H, True, N, K, TILES)
    b = read_row(bias + member * N if ACTIVATION == "modrelu" else H, ACTIVATION == "modrelu", N, K, TILES)
    if KEPT:
        A += member * (T + 1) * step + row * N
    if GATED:
        beta = tl.load(betas + member)
    for t in range(T):
        P += step
        H += step
        following = read_row(P, t + 1 < T, N, K, TILES)
        z = row_product(p, h, W, held, 0, N, K, TILES, HELD)
        a, new = (), ()
        for j in tl.static_range(TILES):
            a_j = kept(z[j], b[j], ACTIVATION, SLOPE)
            h_j = value(a_j, ACTIVATION)
            if GATED:
                h_j += beta * h[j]
            a, new = a + (a_j,), new + (h_j,)
        if KEPT:
            A += step
            write_row(A, a, N, K, TILES)
        write_row(H, new, N, K, TILES)
        p, h = following, new


@row_kernel
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
):
    """dz_t for all t from last to first, dL/dh_0, and each unit's part of dbeta; reads are made a step early."""
    member, row = tl.program_id(0).to(tl.int64), tl.program_id(1)
    step = B.to(tl.int64) * N
    last = (member * (T + 1) + T) * step + row * N
    dH += last
    H += last
    A = A + last if GATED or ACTIVATION == "abs" else H
    dP += (member + 1) * T * step + row * N
    W += member * N * N
    held = hold_tiles(W, N, K, TILES, HELD)
    G, a = read_row(dH, True, N, K, TILES), read_row(A, True, N, K, TILES)
    if GATED:
        beta, dbeta = tl.load(betas + member), ()
        for j in tl.static_range(TILES):
            dbeta = dbeta + (G[j] * 0,)
    outside = read_row(dH - step, T > 0, N, K, TILES)
    for t in range(T):
        dH -= step
        H -= step
        A -= step
        dP -= step
        following = read_row(dH - step, t + 1 < T, N, K, TILES)
        preceding = read_row(A, t + 1 < T, N, K, TILES)
        if GATED:
            h = read_row(H, True, N, K, TILES)
        dz, carried, total = (), (), ()
        for j in tl.static_range(TILES):
            dz_j = G[j] * derivative(a[j], ACTIVATION, SLOPE)
            g_j = outside[j]
            if GATED:
                total = total + (dbeta[j] + G[j] * h[j],)
                g_j += beta * G[j]
            dz, carried = dz + (dz_j,), carried + (g_j,)
        if GATED:
            dbeta = total
        write_row(dP, dz, N, K, TILES)
        G = row_product(carried, dz, W, held, 0, N, K, TILES, HELD)
        a, outside = preceding, following
    write_row(G0 + member * step + row * N, G, N, K, TILES)
    if GATED:
        write_row(dbetas + member * step + row * N, dbeta, N, K, TILES)
