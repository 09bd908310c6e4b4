"""The Elman recurrence with complex states, one sequence per program; gpu/complex_elman.py has the equations.

Real and imaginary parts lie side by side in memory, and a matrix is two real ones in registers.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false

import triton
import triton.language as tl

from orthobench.scan.triton.rows import hold_tiles, outer_end, read_row, row_kernel, row_product, write_row


@triton.jit
def read_part(X, part: tl.constexpr, present, SHAPE: tl.constexpr):
    """The real (0) or imaginary (1) part of a row of N complex numbers; zeros where they are not present."""
    N: tl.constexpr = SHAPE.N
    K: tl.constexpr = SHAPE.K
    TILES: tl.constexpr = SHAPE.TILES
    found = ()
    for j in tl.static_range(TILES):
        columns = j * K + tl.arange(0, K)
        found = found + (tl.load(X + 2 * columns + part, mask=(columns < N) & present, other=0.0),)
    return found


@triton.jit
def last_part(end, dlast, part: tl.constexpr, rows, SHAPE: tl.constexpr):
    """See `read_last`, of the real or the imaginary parts."""
    TILES: tl.constexpr = SHAPE.TILES
    G, row, found = read_part(dlast, part, True, SHAPE), read_part(end, part, rows > 0, SHAPE), ()
    for j in tl.static_range(TILES):
        found = found + (G[j] + row[j],)
    return found


@triton.jit
def write_parts(X, re, im, SHAPE: tl.constexpr):
    """Write a row of complex numbers."""
    N: tl.constexpr = SHAPE.N
    K: tl.constexpr = SHAPE.K
    TILES: tl.constexpr = SHAPE.TILES
    for j in tl.static_range(TILES):
        columns = j * K + tl.arange(0, K)
        tl.store(X + 2 * columns, re[j], mask=columns < N)
        tl.store(X + 2 * columns + 1, im[j], mask=columns < N)


@triton.jit
def complex_product(z_re, z_im, h_re, h_im, M, held, SHAPE: tl.constexpr):
    """Z + h M of complex numbers, M of two real matrices."""
    TILES: tl.constexpr = SHAPE.TILES
    minus = ()
    for j in tl.static_range(TILES):
        minus = minus + (-h_im[j],)
    z_re = row_product(row_product(z_re, h_re, M, held, 0, SHAPE), minus, M, held, 1, SHAPE)
    z_im = row_product(row_product(z_im, h_re, M, held, 1, SHAPE), h_im, M, held, 0, SHAPE)
    return z_re, z_im


@row_kernel
def complex_elman_forward(
    P,
    W,
    bias,
    H,
    Z,
    T,
    B,
    SHAPE: tl.constexpr,
    EPSILON: tl.constexpr,
):
    """h_t and z_t for all t; p_{t+1} is loaded while step t is computed."""
    N: tl.constexpr = SHAPE.N
    TILES: tl.constexpr = SHAPE.TILES
    member, row = tl.program_id(0).to(tl.int64), tl.program_id(1)
    step = 2 * B.to(tl.int64) * N
    P += member * T * step + row * 2 * N
    Z += member * T * step + row * 2 * N
    H += member * (T + 1) * step + row * 2 * N
    W += member * 2 * N * N
    held = hold_tiles(W, SHAPE)
    p_re, p_im = read_part(P, 0, T > 0, SHAPE), read_part(P, 1, T > 0, SHAPE)
    h_re, h_im = read_part(H, 0, True, SHAPE), read_part(H, 1, True, SHAPE)
    b = read_row(bias + member * N, True, SHAPE)
    for t in range(T):
        P += step
        H += step
        next_re, next_im = read_part(P, 0, t + 1 < T, SHAPE), read_part(P, 1, t + 1 < T, SHAPE)
        z_re, z_im = complex_product(p_re, p_im, h_re, h_im, W, held, SHAPE)
        write_parts(Z, z_re, z_im, SHAPE)
        Z += step
        h_re, h_im = (), ()
        for j in tl.static_range(TILES):
            r = tl.sqrt(z_re[j] * z_re[j] + z_im[j] * z_im[j])
            size = r + b[j]
            f = tl.where(size < 0, 0.0, size) / (r + EPSILON)
            h_re, h_im = h_re + (z_re[j] * f,), h_im + (z_im[j] * f,)
        write_parts(H, h_re, h_im, SHAPE)
        p_re, p_im = next_re, next_im


@row_kernel
def complex_elman_backward(
    dH,
    dlast,
    W,
    bias,
    Z,
    dP,
    G0,
    db,
    T,
    B,
    SHAPE: tl.constexpr,
    EPSILON: tl.constexpr,
    OUTSIDE: tl.constexpr,
):
    """dz_t for all t from last to first, dL/dh_0, and the row's part of db."""
    N: tl.constexpr = SHAPE.N
    TILES: tl.constexpr = SHAPE.TILES
    member, row = tl.program_id(0).to(tl.int64), tl.program_id(1)
    step = 2 * B.to(tl.int64) * N
    dH, more = outer_end(dH if OUTSIDE else Z, member, step, row * 2 * N, T, OUTSIDE)
    Z += (member + 1) * T * step + row * 2 * N
    dP += (member + 1) * T * step + row * 2 * N
    W += member * 2 * N * N
    held = hold_tiles(W, SHAPE)
    G_re = last_part(dH, dlast + member * step + row * 2 * N, 0, more, SHAPE)
    G_im = last_part(dH, dlast + member * step + row * 2 * N, 1, more, SHAPE)
    b = read_row(bias + member * N, True, SHAPE)
    sums = ()
    for j in tl.static_range(TILES):
        sums = sums + (tl.zeros_like(b[j]),)
    for t in range(T):
        dH -= step
        Z -= step
        dP -= step
        z_re, z_im = read_part(Z, 0, True, SHAPE), read_part(Z, 1, True, SHAPE)
        inside = t + 1 < more
        out_re, out_im = read_part(dH, 0, inside, SHAPE), read_part(dH, 1, inside, SHAPE)
        dz_re, dz_im, minus, total = (), (), (), ()
        for j in tl.static_range(TILES):
            r = tl.sqrt(z_re[j] * z_re[j] + z_im[j] * z_im[j])
            size, below = r + b[j], r + EPSILON
            active = tl.where(size > 0, 1.0, 0.0)
            f = tl.where(size < 0, 0.0, size) / below
            over = tl.where(r == 0, 0.0, 1.0) / tl.where(r == 0, 1.0, r)
            u_re, u_im = z_re[j] * over, z_im[j] * over
            along = G_re[j] * u_re + G_im[j] * u_im
            turned = (active - f) / below * r * along
            dz_re = dz_re + (f * G_re[j] + turned * u_re,)
            dz_im = dz_im + (f * G_im[j] + turned * u_im,)
            total = total + (sums[j] + active * r / below * along,)
        sums = total
        write_parts(dP, dz_re, dz_im, SHAPE)
        for j in tl.static_range(TILES):
            minus = minus + (-dz_re[j],)
        G_re = row_product(row_product(out_re, dz_re, W, held, 0, SHAPE), dz_im, W, held, 1, SHAPE)
        G_im = row_product(row_product(out_im, dz_im, W, held, 0, SHAPE), minus, W, held, 1, SHAPE)
    write_parts(G0 + (member * B + row) * 2 * N, G_re, G_im, SHAPE)
    write_row(db + (member * B + row) * N, sums, SHAPE)
