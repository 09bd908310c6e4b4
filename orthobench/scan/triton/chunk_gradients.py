"""The gradients of gates, queries and keys within the chunks of `chunks.py`, each chunk of a head by itself."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportGeneralTypeIssues=false, reportAssignmentType=false, reportUnboundVariable=false

import triton
import triton.language as tl

from orthobench.scan.triton.chunks import between, column, column_of, decays, dot, kernel, read, row_of, summed, write


@triton.jit
def products_of_values(
    X,
    dO,
    dV,
    S,
    G,
    Q,
    at,
    first,
    W,
    H,
    d: tl.constexpr,
    e: tl.constexpr,
    ERASE: tl.constexpr,
    C: tl.constexpr,
    D: tl.constexpr,
    V: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Sums over the values of a chunk: dA and dL, (C, C), what reaches q, k and r, (C, D), and the decay's, (D,)."""
    DQ, DK, DR, end = Q * 0, Q * 0, Q * 0, tl.zeros((D,), Q.dtype)
    DA, DL = tl.zeros((C, C), Q.dtype), tl.zeros((C, C), Q.dtype)
    for block in range(0, e, V):
        place, left = at * e + block, e - block
        state = tl.trans(read(S + block, 0, d, e, left, D, V))
        do = read(dO + place, first, W, H * e, left, C, V)
        x = read(X + place, first, W, H * e, left, C, V)
        DA += dot(do, tl.trans(x), PRECISION)
        DQ += dot(do, state, PRECISION)
        if ERASE:
            dv = read(dV + place, first, W, H * e, left, C, V)
            DL -= dot(dv, tl.trans(x), PRECISION)
            DR -= dot(dv, state, PRECISION)
        after = read(G + d * e + block, 0, d, e, left, D, V)
        DK += dot(x, tl.trans(after), PRECISION)
        end += tl.sum(after * tl.trans(state), 1)
    return DA, DL, DQ, DK, DR, end


@triton.jit
def through_channels(
    g,
    k,
    dg,
    Q,
    R,
    DA,
    DL,
    DQ,
    DK,
    DR,
    moved,
    first,
    W,
    H,
    d: tl.constexpr,
    ERASE: tl.constexpr,
    C: tl.constexpr,
    D: tl.constexpr,
):
    """Gradients of q, k and r behind gates of channels, whose own are written; `moved` is what the ends give."""
    rows, E = tl.arange(0, C)[:, None], Q * 0
    for j in range(C):
        i = C - 1 - j
        k_i, E = column(g, k, E, first, i, W, H, d, C, D)
        factor, a = tl.where(rows >= i, tl.exp(E), 0.0), column_of(DA, i, C)[:, None]
        DQ += a * factor * k_i
        given = a * Q
        if ERASE:
            b = column_of(DL, i, C)[:, None]
            DR += b * factor * k_i
            given += b * R
        given *= factor
        moved += tl.where(rows > i, (tl.cumsum(given, 0, reverse=True) + row_of(DK, i, C)[None, :]) * k_i, 0.0)
        DK += tl.where(rows == i, tl.sum(given, 0)[None, :], 0.0)
    write(dg, moved, first, W, H * d, d, C, D)
    return DQ, DK, DR


@triton.jit
def through_gate(
    g,
    dg,
    Q,
    K,
    R,
    DA,
    DL,
    DQ,
    DK,
    DR,
    end,
    whole,
    first,
    W,
    H,
    ERASE: tl.constexpr,
    C: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Gradients of q, k and r behind one gate for a head, whose own is written."""
    rows, columns, E = tl.arange(0, C)[:, None], tl.arange(0, C)[None, :], between(g, first, W, H, C)
    DA, DL = DA * E, DL * E
    pairs = DA * dot(Q, tl.trans(K), PRECISION)
    if ERASE:
        pairs += DL * dot(R, tl.trans(K), PRECISION)
    pairs = summed(pairs, True, C) + tl.sum(K * DK, 1)[None, :]
    moved = summed(tl.sum(Q * DQ + R * DR, 1)[:, None], True, C) + tl.sum(end[:, None] * whole)
    moved += tl.sum(tl.where(rows > columns, pairs, 0.0), 1)[:, None]
    write(dg, moved, first, W, H, 1, C, 1)
    DQ += dot(DA, K, PRECISION)
    DK += dot(tl.trans(DA), Q, PRECISION)
    if ERASE:
        DR += dot(DL, K, PRECISION)
        DK += dot(tl.trans(DL), R, PRECISION)
    return DQ, DK, DR


@kernel
def matrix_gradients(
    g,
    q,
    k,
    r,
    X,
    dO,
    dV,
    S,
    G,
    dg,
    dq,
    dk,
    dr,
    W,
    H,
    CHUNKS,
    d: tl.constexpr,
    e: tl.constexpr,
    CHANNELS: tl.constexpr,
    ERASE: tl.constexpr,
    C: tl.constexpr,
    D: tl.constexpr,
    V: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """The gradients of gates, queries and keys of one chunk of a head."""
    chunk, head = tl.program_id(0), tl.program_id(1).to(tl.int64)
    first, at = chunk * C, head // H * W * H + head % H
    rows, columns = tl.arange(0, C)[:, None], tl.arange(0, C)[None, :]
    here = (head * (CHUNKS + 1) + chunk) * d * e
    g, dg = g + (at * d if CHANNELS else at), dg + (at * d if CHANNELS else at)
    Q = read(q + at * d, first, W, H * d, d, C, D)
    DA, DL, DQ, DK, DR, end = products_of_values(
        X, dO, dV, S + here, G + here, Q, at, first, W, H, d, e, ERASE, C, D, V, PRECISION
    )
    since, behind, whole = decays(g, first, W, H, d, CHANNELS, C, D)
    DQ, DK, DR = since * DQ, behind * DK, since * DR
    DA, DL = tl.where(rows >= columns, DA, 0.0), tl.where(rows > columns, DL, 0.0)
    K = read(k + at * d, first, W, H * d, d, C, D)
    R = read((r if ERASE else q) + at * d, first, W, H * d, d, C, D)
    if CHANNELS:
        moved = tl.cumsum(Q * DQ + R * DR, 0, reverse=True) + tl.trans(end[:, None] * whole)
        DQ, DK, DR = through_channels(g, k + at * d, dg, Q, R, DA, DL, DQ, DK, DR, moved, first, W, H, d, ERASE, C, D)
    else:
        DQ, DK, DR = through_gate(g, dg, Q, K, R, DA, DL, DQ, DK, DR, end, whole, first, W, H, ERASE, C, PRECISION)
    write(dq + at * d, DQ, first, W, H * d, d, C, D)
    write(dk + at * d, DK, first, W, H * d, d, C, D)
    if ERASE:
        write(dr + at * d, DR, first, W, H * d, d, C, D)
