"""The gated recurrent unit, one sequence per program; gru.py says what is saved, and has the kernels for many."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportAssignmentType=false

import triton
import triton.language as tl

from orthobench.scan.triton.kernels import derivative, kept, value
from orthobench.scan.triton.rows import hold_tiles, read_row, row_product, write_row


@triton.jit
def logistic(z):
    """The logistic function."""
    return 1 / (1 + tl.exp(-z))


@triton.jit(do_not_specialize=["T", "B"])
def gru_row_forward(
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
        z_u = row_product(p_u, h, W, held, G - 2, N, K, TILES, HELD)
        if RESET == "none":
            z = row_product(p_c, h, W, held, G - 1, N, K, TILES, HELD)
        else:
            z_r = row_product(p_r, h, W, held, 0, N, K, TILES, HELD)
            r, x = (), ()
            for j in tl.static_range(TILES):
                r_j = logistic(z_r[j])
                r, x = r + (r_j,), x + (r_j * h[j],)
            if KEPT:
                write_row(gates, r, N, K, TILES)
            if RESET == "after":
                k = row_product(b_k, h, W, held, G - 1, N, K, TILES, HELD)
                if KEPT:
                    write_row(recalled, k, N, K, TILES)
                    recalled += step
                z = ()
                for j in tl.static_range(TILES):
                    z = z + (p_c[j] + r[j] * k[j],)
            else:
                z = row_product(p_c, x, W, held, G - 1, N, K, TILES, HELD)
        u, c, new = (), (), ()
        for j in tl.static_range(TILES):
            u_j, c_j = logistic(z_u[j]), kept(z[j], b[j], ACTIVATION, SLOPE)
            a_j = value(c_j, ACTIVATION)
            u, c, new = u + (u_j,), c + (c_j,), new + (a_j + u_j * (h[j] - a_j),)
        if KEPT:
            write_row(gates + M - 2 * N, u, N, K, TILES)
            write_row(gates + M - N, c, N, K, TILES)
            gates += G * step
        write_row(H, new, N, K, TILES)
        p_r, p_u, p_c, h = next_r, next_u, next_c, new


@triton.jit(do_not_specialize=["T", "B"])
def gru_row_backward(
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
        dz_u, dz_c, old = (), (), ()
        for j in tl.static_range(TILES):
            dz_u = dz_u + (G[j] * (h[j] - value(c[j], ACTIVATION)) * u[j] * (1 - u[j]),)
            dz_c = dz_c + (G[j] * (1 - u[j]) * derivative(c[j], ACTIVATION, SLOPE),)
            old = old + (outside[j] + G[j] * u[j],)
        write_row(dP + M - 2 * N, dz_u, N, K, TILES)
        write_row(dP + M - N, dz_c, N, K, TILES)
        if RESET == "none":
            old = row_product(old, dz_c, W, held, COUNT - 1, N, K, TILES, HELD)
        else:
            r = read_row(gates, True, N, K, TILES)
            dz_r, recall = (), ()
            if RESET == "after":
                recalled -= step
                k = read_row(recalled, True, N, K, TILES)
                for j in tl.static_range(TILES):
                    dz_r = dz_r + (dz_c[j] * k[j] * r[j] * (1 - r[j]),)
                    recall = recall + (dz_c[j] * r[j],)
                old = row_product(old, recall, W, held, COUNT - 1, N, K, TILES, HELD)
            else:
                zero = ()
                for j in tl.static_range(TILES):
                    zero = zero + (tl.zeros_like(old[j]),)
                s = row_product(zero, dz_c, W, held, COUNT - 1, N, K, TILES, HELD)
                for j in tl.static_range(TILES):
                    dz_r = dz_r + (s[j] * h[j] * r[j] * (1 - r[j]),)
                    recall = recall + (old[j] + s[j] * r[j],)
                old = recall
            write_row(dP, dz_r, N, K, TILES)
            old = row_product(old, dz_r, W, held, 0, N, K, TILES, HELD)
        G = row_product(old, dz_u, W, held, COUNT - 2, N, K, TILES, HELD)
    write_row(G0 + member * step + row * N, G, N, K, TILES)
