"""The Elman and the scalar-gated recurrence, one sequence per program."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportGeneralTypeIssues=false

import triton.language as tl

from orthobench.scan.triton.activations import derivative, kept, value
from orthobench.scan.triton.gates import add_product, add_scaled, add_signed, zeros
from orthobench.scan.triton.rows import (
    hold_tiles,
    outer_end,
    read_last,
    read_row,
    row_kernel,
    row_product,
    write_row,
)


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
    SHAPE: tl.constexpr,
    ACTIVATION: tl.constexpr,
    SLOPE: tl.constexpr,
    GATED: tl.constexpr,
    KEPT: tl.constexpr,
):
    """h_t for all t; p_{t+1} is loaded while step t is computed."""
    N: tl.constexpr = SHAPE.N
    TILES: tl.constexpr = SHAPE.TILES
    member, row = tl.program_id(0).to(tl.int64), tl.program_id(1)
    step = B.to(tl.int64) * N
    P += member * T * step + row * N
    H += member * (T + 1) * step + row * N
    W += member * N * N
    held = hold_tiles(W, SHAPE)
    p, h = read_row(P, T > 0, SHAPE), read_row(H, True, SHAPE)
    b = read_row(bias + member * N if ACTIVATION == "modrelu" else H, ACTIVATION == "modrelu", SHAPE)
    if KEPT:
        A += member * (T + 1) * step + row * N
    if GATED:
        beta = tl.load(betas + member)
    for t in range(T):
        P += step
        H += step
        following = read_row(P, t + 1 < T, SHAPE)
        z = row_product(p, h, W, held, 0, SHAPE)
        a, new = (), ()
        for j in tl.static_range(TILES):
            a_j = kept(z[j], b[j], ACTIVATION, SLOPE)
            h_j = value(a_j, ACTIVATION)
            if GATED:
                h_j += beta * h[j]
            a, new = a + (a_j,), new + (h_j,)
        if KEPT:
            A += step
            write_row(A, a, SHAPE)
        write_row(H, new, SHAPE)
        p, h = following, new


@row_kernel
def elman_backward(
    dH,
    dlast,
    W,
    betas,
    H,
    A,
    dP,
    G0,
    dbetas,
    dbias,
    T,
    B,
    SHAPE: tl.constexpr,
    ACTIVATION: tl.constexpr,
    SLOPE: tl.constexpr,
    GATED: tl.constexpr,
    OUTSIDE: tl.constexpr,
):
    """dz_t for all t from last to first, dL/dh_0, and the row's parts of dbeta and db; reads are made a step early."""
    N: tl.constexpr = SHAPE.N
    TILES: tl.constexpr = SHAPE.TILES
    member, row = tl.program_id(0).to(tl.int64), tl.program_id(1)
    step = B.to(tl.int64) * N
    last, first = (member * (T + 1) + T) * step + row * N, member * step + row * N
    H += last
    A = A + last if GATED or ACTIVATION == "abs" else H
    dH, more = outer_end(dH if OUTSIDE else H, member, step, row * N, T, OUTSIDE)
    dP += (member + 1) * T * step + row * N
    W += member * N * N
    held = hold_tiles(W, SHAPE)
    a, G = read_row(A, True, SHAPE), read_last(dH, dlast + first, more, SHAPE)
    db, dbeta = zeros(G, TILES), zeros(G, TILES)
    if GATED:
        beta = tl.load(betas + member)
    outside = read_row(dH - step, more > 1, SHAPE)
    for t in range(T):
        dH -= step
        H -= step
        A -= step
        dP -= step
        following = read_row(dH - step, t + 2 < more, SHAPE)
        preceding = read_row(A, t + 1 < T, SHAPE)
        if GATED:
            h = read_row(H, True, SHAPE)
        dz, carried = (), outside
        for j in tl.static_range(TILES):
            dz = dz + (G[j] * derivative(a[j], ACTIVATION, SLOPE),)
        if GATED:
            dbeta, carried = add_product(dbeta, G, h, TILES), add_scaled(outside, beta, G, TILES)
        if ACTIVATION == "modrelu":
            db = add_signed(db, dz, a, TILES)
        write_row(dP, dz, SHAPE)
        G = row_product(carried, dz, W, held, 0, SHAPE)
        a, outside = preceding, following
    write_row(G0 + first, G, SHAPE)
    if GATED:
        write_row(dbetas + first, dbeta, SHAPE)
    if ACTIVATION == "modrelu":
        write_row(dbias + first, db, SHAPE)
