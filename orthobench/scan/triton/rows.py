"""Functions of the kernels that compute one sequence per program, with the recurrent matrices in registers.

A program owns one sequence of one member. It loads a matrix M (summed over, found) once, as tiles (K, K), keeps the
first HELD of them in registers for the whole sequence and reads the others, where a matrix is too large, from the cache
at every step. A product is then one fused multiply-add of float32 for each number that a thread holds, and a sum over
the threads: no tensor core, no split, no rounding beyond float32's own.

    forward     z = p + W h         M = W^T, transposed in memory, so that both loads are contiguous
    backward    G = g + W^T dz      M = W
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportGeneralTypeIssues=false, reportUnboundVariable=false

import inspect
from collections.abc import Callable
from typing import Any

import triton
import triton.language as tl


def row_kernel(function: Callable[..., Any]) -> Any:
    """`triton.jit` of one kernel for any T, B and place of its tensors in memory.

    For addresses that 16 divides Triton would load four neighbouring columns into each thread, with sums over more
    threads, and registers that spill.
    """
    parameters = inspect.signature(function).parameters.values()
    given = [parameter.name for parameter in parameters if parameter.annotation is inspect.Parameter.empty]
    return triton.jit(do_not_specialize=["T", "B"], do_not_specialize_on_alignment=given)(function)


@triton.jit
def read_row(X, present, SHAPE: tl.constexpr):
    """The tiles (K,) of N numbers at X; zeros beyond, or all zeros where they are not present."""
    N: tl.constexpr = SHAPE.N
    K: tl.constexpr = SHAPE.K
    TILES: tl.constexpr = SHAPE.TILES
    found = ()
    for j in tl.static_range(TILES):
        columns = j * K + tl.arange(0, K)
        found = found + (tl.load(X + columns, mask=(columns < N) & present, other=0.0),)
    return found


@triton.jit
def outer_end(dH, member, step, own, T, OUTSIDE: tl.constexpr):
    """The last row of the gradients dH (S, T, B, ...) of all states, and their number: T, or none if not OUTSIDE."""
    if OUTSIDE:
        return dH + ((member + 1) * T - 1) * step + own, T
    else:
        return dH, T * 0


@triton.jit
def read_last(end, dlast, rows, SHAPE: tl.constexpr):
    """Tiles of the gradient of the last state: what dlast has, and what `end` has where there are rows."""
    TILES: tl.constexpr = SHAPE.TILES
    G, row, found = read_row(dlast, True, SHAPE), read_row(end, rows > 0, SHAPE), ()
    for j in tl.static_range(TILES):
        found = found + (G[j] + row[j],)
    return found


@triton.jit
def write_row(X, tiles, SHAPE: tl.constexpr):
    """Write tiles to where `read_row` reads them."""
    N: tl.constexpr = SHAPE.N
    K: tl.constexpr = SHAPE.K
    TILES: tl.constexpr = SHAPE.TILES
    for j in tl.static_range(TILES):
        columns = j * K + tl.arange(0, K)
        tl.store(X + columns, tiles[j], mask=columns < N)


@triton.jit
def matrix_tile(M, index: tl.constexpr, SHAPE: tl.constexpr):
    """Tile `index` of the matrices M (G, N, N), counted matrix by matrix and, within one, column by column."""
    N: tl.constexpr = SHAPE.N
    K: tl.constexpr = SHAPE.K
    TILES: tl.constexpr = SHAPE.TILES
    rows = index % TILES * K + tl.arange(0, K)
    columns = (index // TILES) % TILES * K + tl.arange(0, K)
    mask = (rows < N)[:, None] & (columns < N)[None, :]
    at = index // (TILES * TILES) * N * N + rows[:, None] * N + columns[None, :]
    return tl.load(M + at, mask=mask, other=0.0)


@triton.jit
def find_held(M, held, index: tl.constexpr, SHAPE: tl.constexpr):
    """Tile `index` of M: one of the held tiles, or read from memory."""
    HELD: tl.constexpr = SHAPE.HELD
    if index < HELD:
        return held[index]
    else:
        return matrix_tile(M, index, SHAPE)


@triton.jit
def hold_tiles(M, SHAPE: tl.constexpr):
    """The first HELD tiles of M."""
    HELD: tl.constexpr = SHAPE.HELD
    found = ()
    for index in tl.static_range(HELD):
        found = found + (matrix_tile(M, index, SHAPE),)
    return found


@triton.jit
def row_product(z, h, M, held, gate: tl.constexpr, SHAPE: tl.constexpr):
    """Tiles of z + h M_gate."""
    TILES: tl.constexpr = SHAPE.TILES
    found = ()
    for j in tl.static_range(TILES):
        for i in tl.static_range(TILES):
            part = find_held(M, held, (gate * TILES + j) * TILES + i, SHAPE) * h[i][:, None]
            if i == 0:
                total = part
            else:
                total += part
        found = found + (z[j] + tl.sum(total, axis=0),)
    return found


@triton.jit
def row_sum(z, d, M, held, GATES: tl.constexpr, SHAPE: tl.constexpr):
    """Tiles of z + sum_gate d_gate M_gate: one sum over the threads for all gates.

    Where tiles are read from memory there is one for each gate: they would be read all at once, and registers spill.
    """
    TILES: tl.constexpr = SHAPE.TILES
    HELD: tl.constexpr = SHAPE.HELD
    if HELD < GATES * TILES * TILES:
        for gate in tl.static_range(GATES):
            z = row_product(z, d[gate], M, held, gate, SHAPE)
        return z
    else:
        found = ()
        for j in tl.static_range(TILES):
            for i in tl.static_range(GATES * TILES):
                part = held[(i // TILES * TILES + j) * TILES + i % TILES] * d[i // TILES][i % TILES][:, None]
                if i == 0:
                    total = part
                else:
                    total += part
            found = found + (z[j] + tl.sum(total, axis=0),)
        return found
