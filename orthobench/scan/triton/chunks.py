"""The kernels of `matrix_state.py`, which has the equations: C writes at once, as products of matrices.

Two of them are for each chunk and head by itself, and two go over the chunks of a head for a block of its values. Rows
beyond the last write are zero: their gates are one, and they write nothing.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportGeneralTypeIssues=false, reportAssignmentType=false, reportUnboundVariable=false

from typing import Any

import triton
import triton.language as tl


def kernel(function: Any) -> Any:
    """`triton.jit` of one kernel for any number of writes and of heads."""
    return triton.jit(do_not_specialize=["W", "H", "CHUNKS"])(function)


@triton.jit
def read(X, first, W, stride, width, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """The rows of X from `first` on, as a tile; zeros from row W and from column `width` on."""
    rows, columns = first + tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    mask = (rows < W)[:, None] & (columns < width)[None, :]
    return tl.load(X + rows[:, None] * stride + columns[None, :], mask=mask, other=0.0)


@triton.jit
def write(X, tile, first, W, stride, width, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Write a tile to where `read` reads it."""
    rows, columns = first + tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    mask = (rows < W)[:, None] & (columns < width)[None, :]
    tl.store(X + rows[:, None] * stride + columns[None, :], tile, mask=mask)


@triton.jit
def dot(a, b, PRECISION: tl.constexpr):
    """The product of two tiles."""
    return tl.dot(a, b, input_precision=PRECISION, out_dtype=a.dtype)


@triton.jit
def row_of(tile, i, C: tl.constexpr):
    """Row i of a tile of C rows."""
    return tl.sum(tl.where(tl.arange(0, C)[:, None] == i, tile, 0.0), 0)


@triton.jit
def column_of(tile, i, C: tl.constexpr):
    """Column i of a tile of C columns."""
    return tl.sum(tl.where(tl.arange(0, C)[None, :] == i, tile, 0.0), 1)


@triton.jit
def summed(tile, BACK: tl.constexpr, C: tl.constexpr):
    """Sums of the rows of a tile (C, C) or (C, 1) from the first to each, or from each to the last.

    With Triton 3.6 `tl.cumsum` over the rows of such tiles does not compile.
    """
    if tile.shape[1] == 1:
        rows, columns = tl.arange(0, C)[:, None], tl.arange(0, C)[None, :]
        kept = rows <= columns if BACK else rows >= columns
        return tl.sum(tl.where(kept, tl.trans(tile), 0.0), 1)[:, None]
    else:
        return tl.trans(tl.cumsum(tl.trans(tile), 1, reverse=BACK))


@triton.jit
def decays(g, first, W, H, d: tl.constexpr, CHANNELS: tl.constexpr, C: tl.constexpr, D: tl.constexpr):
    """Products of gates: from the start of the chunk up to every write, from behind it to the end, and all.

    Of shapes (C, D), (C, D) and (D, 1), or with ones in place of D. Sums of logarithms leave no term out again, because
    differences of long sums lose digits.
    """
    width: tl.constexpr = d if CHANNELS else 1
    columns: tl.constexpr = D if CHANNELS else 1
    own = read(g, first, W, H * width, width, C, columns)
    inside = tl.arange(0, C)[:, None] < C - 1
    following = tl.where(inside, read(g, first + 1, W, H * width, width, C, columns), 0.0)
    if CHANNELS:
        behind = tl.cumsum(following, 0, reverse=True)
        return tl.exp(tl.cumsum(own, 0)), tl.exp(behind), tl.exp(tl.sum(own, 0))[:, None]
    else:
        behind = summed(following, True, C)
        return tl.exp(summed(own, False, C)), tl.exp(behind), tl.exp(tl.sum(own, 0))[:, None]


@triton.jit
def between(g, first, W, H, C: tl.constexpr):
    """E_ti, the product of the gates of a head behind the write i up to t, (C, C); zero for t < i."""
    rows, columns = tl.arange(0, C)[:, None], tl.arange(0, C)[None, :]
    own = read(g, first, W, H, 1, C, 1)
    return tl.where(rows >= columns, tl.exp(summed(tl.where(rows > columns, own, 0.0), False, C)), 0.0)


@triton.jit
def inverse(L, C: tl.constexpr):
    """(I + L)^-1 of a matrix that is zero on and above the diagonal, row by row."""
    rows, columns = tl.arange(0, C)[:, None], tl.arange(0, C)[None, :]
    found = -L
    for i in range(1, C):
        row = row_of(found, i, C)
        row += tl.sum(row[:, None] * found, 0)
        found = tl.where(rows == i, row[None, :], found)
    return found + tl.where(rows == columns, 1.0, 0.0).to(L.dtype)


@kernel
def matrix_prepare(
    g,
    q,
    k,
    r,
    A,
    inverses,
    W,
    H,
    CHUNKS,
    d: tl.constexpr,
    CHANNELS: tl.constexpr,
    ERASE: tl.constexpr,
    C: tl.constexpr,
    D: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """A_ti = q_t . E_ti k_i and the inverse of I + L, L_ti = r_t . E_ti k_i below the diagonal, of one chunk."""
    chunk, head = tl.program_id(0), tl.program_id(1).to(tl.int64)
    first, at = chunk * C, head // H * W * H + head % H
    rows, columns = tl.arange(0, C)[:, None], tl.arange(0, C)[None, :]
    here = (head * CHUNKS + chunk) * C * C
    stride = H * d
    Q = read(q + at * d, first, W, stride, d, C, D)
    R = read((r if ERASE else q) + at * d, first, W, stride, d, C, D)
    if CHANNELS:
        E = tl.zeros((C, D), Q.dtype)
        a, L = tl.zeros((C, C), Q.dtype), tl.zeros((C, C), Q.dtype)
        for j in range(C):
            i = C - 1 - j
            k_i, E = column(g + at * d, k + at * d, E, first, i, W, H, d, C, D)
            weighed = tl.where(rows >= i, tl.exp(E), 0.0) * k_i
            a += tl.where(columns == i, tl.sum(Q * weighed, 1)[:, None], 0.0)
            if ERASE:
                L += tl.where((columns == i) & (rows > i), tl.sum(R * weighed, 1)[:, None], 0.0)
    else:
        K = tl.trans(read(k + at * d, first, W, stride, d, C, D))
        E = between(g + at, first, W, H, C)
        a = dot(Q, K, PRECISION) * E
        if ERASE:
            L = tl.where(rows > columns, dot(R, K, PRECISION) * E, 0.0)
    write(A + here, a, 0, C, C, C, C, C)
    if ERASE:
        write(inverses + here, inverse(L, C), 0, C, C, C, C, C)


@triton.jit
def column(g, k, E, first, i, W, H, d: tl.constexpr, C: tl.constexpr, D: tl.constexpr):
    """Key i of a chunk, (1, D), and the logarithms (C, D) of its E_ti from those of the key behind it."""
    rows = tl.arange(0, C)[:, None]
    g_next = read(g, first + i + 1, W, H * d, d, 1, D)
    return read(k, first + i, W, H * d, d, 1, D), tl.where(rows > i, E + g_next, 0.0)


@kernel
def matrix_forward(
    g,
    q,
    k,
    r,
    v,
    A,
    inverses,
    S0,
    X,
    O,
    S,
    W,
    H,
    CHUNKS,
    d: tl.constexpr,
    e: tl.constexpr,
    CHANNELS: tl.constexpr,
    ERASE: tl.constexpr,
    KEPT: tl.constexpr,
    C: tl.constexpr,
    D: tl.constexpr,
    V: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """The outputs, what is written, and the states at the ends of chunks, of V values of one head."""
    block, head = tl.program_id(0) * V, tl.program_id(1).to(tl.int64)
    at, size = head // H * W * H + head % H, d * e
    g += at * d if CHANNELS else at
    S += head * (CHUNKS * KEPT + 1) * size + block
    A += head * CHUNKS * C * C
    inverses = (inverses if ERASE else A) + (head * CHUNKS * C * C if ERASE else 0)
    place, left = at * e + block, e - block
    state = read(S0 + head * size + block, 0, d, e, left, D, V)
    for chunk in range(CHUNKS):
        first = chunk * C
        if KEPT:
            write(S, state, 0, d, e, left, D, V)
            S += size
        since, behind, whole = decays(g, first, W, H, d, CHANNELS, C, D)
        x = read(v + place, first, W, H * e, left, C, V)
        if ERASE:
            x -= dot(since * read(r + at * d, first, W, H * d, d, C, D), state, PRECISION)
            x = dot(read(inverses + chunk * C * C, 0, C, C, C, C, C), x, PRECISION)
            if KEPT:
                write(X + place, x, first, W, H * e, left, C, V)
        o = dot(since * read(q + at * d, first, W, H * d, d, C, D), state, PRECISION)
        o += dot(read(A + chunk * C * C, 0, C, C, C, C, C), x, PRECISION)
        write(O + place, o, first, W, H * e, left, C, V)
        keys = behind * read(k + at * d, first, W, H * d, d, C, D)
        state = whole * state + dot(tl.trans(keys), x, PRECISION)
    write(S, state, 0, d, e, left, D, V)


@kernel
def matrix_backward(
    g,
    q,
    k,
    r,
    A,
    inverses,
    dO,
    dV,
    G,
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
    """The gradients of values, and of the states at the ends of chunks, the last of which is there already."""
    block, head = tl.program_id(0) * V, tl.program_id(1).to(tl.int64)
    at, size = head // H * W * H + head % H, d * e
    g += at * d if CHANNELS else at
    G += (head * (CHUNKS + 1) + CHUNKS) * size + block
    A += head * CHUNKS * C * C
    inverses = (inverses if ERASE else A) + (head * CHUNKS * C * C if ERASE else 0)
    place, left = at * e + block, e - block
    state = read(G, 0, d, e, left, D, V)
    for j in range(CHUNKS):
        chunk = CHUNKS - 1 - j
        first = chunk * C
        since, behind, whole = decays(g, first, W, H, d, CHANNELS, C, D)
        do = read(dO + place, first, W, H * e, left, C, V)
        keys = behind * read(k + at * d, first, W, H * d, d, C, D)
        x = dot(keys, state, PRECISION) + dot(tl.trans(read(A + chunk * C * C, 0, C, C, C, C, C)), do, PRECISION)
        queries = since * read(q + at * d, first, W, H * d, d, C, D)
        state = whole * state + dot(tl.trans(queries), do, PRECISION)
        if ERASE:
            x = dot(tl.trans(read(inverses + chunk * C * C, 0, C, C, C, C, C)), x, PRECISION)
            erased = since * read(r + at * d, first, W, H * d, d, C, D)
            state -= dot(tl.trans(erased), x, PRECISION)
        write(dV + place, x, first, W, H * e, left, C, V)
        G -= size
        write(G, state, 0, d, e, left, D, V)
