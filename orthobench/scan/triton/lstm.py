"""Long short-term memory, one sequence per program; native/lstm.py has the equations of the backward pass.

Gates, projections and the four matrices are stored in the order i, f, g, o. For a backward pass the gates and the
memory cells before each step are saved; tanh of a memory cell is computed again.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportAssignmentType=false, reportGeneralTypeIssues=false

import triton
import triton.language as tl

from orthobench.scan.triton.activations import tanh
from orthobench.scan.triton.gates import sigmoid, tanhs
from orthobench.scan.triton.rows import (
    hold_tiles,
    outer_end,
    read_last,
    read_row,
    row_kernel,
    row_product,
    row_sum,
    write_row,
)


@row_kernel
def lstm_forward(
    P,
    W,
    H,
    last,
    gates,
    C,
    T,
    B,
    SHAPE: tl.constexpr,
    KEPT: tl.constexpr,
):
    """h_t for all t, and c_T in place of c_0 in `last`; the projections of step t + 1 are loaded during step t."""
    N: tl.constexpr = SHAPE.N
    TILES: tl.constexpr = SHAPE.TILES
    member, row = tl.program_id(0).to(tl.int64), tl.program_id(1)
    step = B.to(tl.int64) * N
    P += 4 * (member * T * step + row * N)
    H += member * (T + 1) * step + row * N
    W += member * 4 * N * N
    last += member * step + row * N
    held = hold_tiles(W, SHAPE)
    p_i, p_f = read_row(P, T > 0, SHAPE), read_row(P + N, T > 0, SHAPE)
    p_g, p_o = read_row(P + 2 * N, T > 0, SHAPE), read_row(P + 3 * N, T > 0, SHAPE)
    h, c = read_row(H, True, SHAPE), read_row(last, True, SHAPE)
    if KEPT:
        gates += 4 * (member * T * step + row * N)
        C += member * T * step + row * N
    for t in range(T):
        P += 4 * step
        H += step
        more = t + 1 < T
        next_i, next_f = read_row(P, more, SHAPE), read_row(P + N, more, SHAPE)
        next_g, next_o = read_row(P + 2 * N, more, SHAPE), read_row(P + 3 * N, more, SHAPE)
        i = sigmoid(row_product(p_i, h, W, held, 0, SHAPE), TILES)
        f = sigmoid(row_product(p_f, h, W, held, 1, SHAPE), TILES)
        g = tanhs(row_product(p_g, h, W, held, 2, SHAPE), TILES)
        o = sigmoid(row_product(p_o, h, W, held, 3, SHAPE), TILES)
        if KEPT:
            write_row(C, c, SHAPE)
            write_row(gates, i, SHAPE)
            write_row(gates + N, f, SHAPE)
            write_row(gates + 2 * N, g, SHAPE)
            write_row(gates + 3 * N, o, SHAPE)
            C += step
            gates += 4 * step
        c, h = remember(i, f, g, o, c, TILES)
        write_row(H, h, SHAPE)
        p_i, p_f, p_g, p_o = next_i, next_f, next_g, next_o
    write_row(last, c, SHAPE)


@row_kernel
def lstm_backward(
    dH,
    dlast,
    dmemory,
    W,
    last,
    gates,
    C,
    dP,
    G0,
    S0,
    T,
    B,
    SHAPE: tl.constexpr,
    OUTSIDE: tl.constexpr,
):
    """dz_t of every gate for all t from last to first, dL/dh_0 and dL/dc_0; the next step's reads are made early."""
    N: tl.constexpr = SHAPE.N
    TILES: tl.constexpr = SHAPE.TILES
    member, row = tl.program_id(0).to(tl.int64), tl.program_id(1)
    step, own = B.to(tl.int64) * N, row * N
    dH, rows = outer_end(dH if OUTSIDE else last, member, step, own, T, OUTSIDE)
    end = (member + 1) * T * step + own
    gates += 4 * (end - step)
    C += end - step
    dP += 4 * end
    W += member * 4 * N * N
    first = member * step + own
    held = hold_tiles(W, SHAPE)
    G, S = read_last(dH, dlast + first, rows, SHAPE), read_row(dmemory + first, True, SHAPE)
    c = read_row(last + first, True, SHAPE)
    i, f = read_row(gates, T > 0, SHAPE), read_row(gates + N, T > 0, SHAPE)
    g, o = read_row(gates + 2 * N, T > 0, SHAPE), read_row(gates + 3 * N, T > 0, SHAPE)
    before, outside = read_row(C, T > 0, SHAPE), read_row(dH - step, rows > 1, SHAPE)
    for t in range(T):
        dH -= step
        gates -= 4 * step
        C -= step
        dP -= 4 * step
        more = t + 1 < T
        next_i, next_f = read_row(gates, more, SHAPE), read_row(gates + N, more, SHAPE)
        next_g, next_o = read_row(gates + 2 * N, more, SHAPE), read_row(gates + 3 * N, more, SHAPE)
        preceding, following = read_row(C, more, SHAPE), read_row(dH - step, t + 2 < rows, SHAPE)
        dz_i, dz_f, dz_g, dz_o, S = reverse(G, S, i, f, g, o, c, before, TILES)
        write_row(dP, dz_i, SHAPE)
        write_row(dP + N, dz_f, SHAPE)
        write_row(dP + 2 * N, dz_g, SHAPE)
        write_row(dP + 3 * N, dz_o, SHAPE)
        G = row_sum(outside, (dz_i, dz_f, dz_g, dz_o), W, held, 4, SHAPE)
        c, i, f, g, o = before, next_i, next_f, next_g, next_o
        before, outside = preceding, following
    write_row(G0 + first, G, SHAPE)
    write_row(S0 + first, S, SHAPE)


@triton.jit
def remember(i, f, g, o, c, TILES: tl.constexpr):
    """c_t and h_t from the gates and c_{t-1}."""
    memory, h = (), ()
    for j in tl.static_range(TILES):
        c_j = f[j] * c[j] + i[j] * g[j]
        memory, h = memory + (c_j,), h + (o[j] * tanh(c_j),)
    return memory, h


@triton.jit
def reverse(G, S, i, f, g, o, c, before, TILES: tl.constexpr):
    """The gates' dz, and what step t gives to dL/dc_{t-1}; from G = dL/dh_t and S, what step t + 1 gives to dL/dc_t."""
    dz_i, dz_f, dz_g, dz_o, carried = (), (), (), (), ()
    for j in tl.static_range(TILES):
        s = tanh(c[j])
        d = S[j] + G[j] * o[j] * (1 - s * s)
        dz_i = dz_i + (d * g[j] * i[j] * (1 - i[j]),)
        dz_f = dz_f + (d * before[j] * f[j] * (1 - f[j]),)
        dz_g = dz_g + (d * i[j] * (1 - g[j] * g[j]),)
        dz_o = dz_o + (G[j] * s * o[j] * (1 - o[j]),)
        carried = carried + (d * f[j],)
    return dz_i, dz_f, dz_g, dz_o, carried
