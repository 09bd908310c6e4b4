"""Functions that the Triton kernels share: tiles of rows and matrices, their products, and activations.

A program computes all time steps of ROWS rows of one member's batch. Rows do not depend on each other, so no program
waits for another. A hidden state is a tuple of TILES tiles (ROWS, K); a stack of G recurrent matrices is a tuple of
G TILES^2 tiles (K, K), so that N = 190 costs 3 x 64 columns and not 256. The first HELD tiles of the matrices stay on
the chip for the whole sequence; the others are read from the cache at every step. A kernel is compiled for any B and T.

    forward     z = p + h W^T       the matrix tiles are transposed
    backward    G = g + dz W        the matrix tiles are not transposed
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportGeneralTypeIssues=false

import triton
import triton.language as tl

ROWS = tl.constexpr(16)  # the fewest rows that tensor cores multiply


@triton.jit
def read_rows(X, rows, inside, width, N: tl.constexpr, K: tl.constexpr, TILES: tl.constexpr):
    """The tiles of a block (B, N) of X whose rows are `width` numbers apart; zero outside the block."""
    found = ()
    for j in tl.static_range(TILES):
        columns = j * K + tl.arange(0, K)
        mask = inside[:, None] & (columns < N)[None, :]
        found = found + (tl.load(X + rows[:, None] * width + columns[None, :], mask=mask, other=0.0),)
    return found


@triton.jit
def write_rows(X, tiles, rows, inside, width, N: tl.constexpr, K: tl.constexpr, TILES: tl.constexpr):
    """Write tiles to where `read_rows` reads them."""
    for j in tl.static_range(TILES):
        columns = j * K + tl.arange(0, K)
        mask = inside[:, None] & (columns < N)[None, :]
        tl.store(X + rows[:, None] * width + columns[None, :], tiles[j], mask=mask)


@triton.jit
def read_bias(b, like, N: tl.constexpr, K: tl.constexpr, TILES: tl.constexpr, PRESENT: tl.constexpr):
    """The bias b (N,) as tiles (ROWS, K) of the dtype of `like`; zeros where there is no bias."""
    found = ()
    for j in tl.static_range(TILES):
        tile = tl.zeros_like(like[j])
        if PRESENT:
            columns = j * K + tl.arange(0, K)
            tile += tl.load(b + columns, mask=columns < N, other=0.0)[None, :]
        found = found + (tile,)
    return found


@triton.jit
def read_tile(W, index: tl.constexpr, N: tl.constexpr, K: tl.constexpr, TILES: tl.constexpr, TRANSPOSED: tl.constexpr):
    """Tile `index` of the matrices W (G, N, N), counted matrix by matrix and row by row."""
    rows = (index // TILES) % TILES * K + tl.arange(0, K)
    columns = index % TILES * K + tl.arange(0, K)
    mask = (rows < N)[:, None] & (columns < N)[None, :]
    at = columns[None, :] * N + rows[:, None] if TRANSPOSED else rows[:, None] * N + columns[None, :]
    return tl.load(W + index // (TILES * TILES) * N * N + at, mask=mask, other=0.0)


@triton.jit
def rounded(x):
    """The nearest numbers that TensorFloat-32 holds: 10 bits of fraction. NaN, whose bits would carry, stays NaN."""
    nearest = ((x.to(tl.int32, bitcast=True) + 0x1000) & -0x2000).to(tl.float32, bitcast=True)
    return tl.where(x == x, nearest, x)


@triton.jit
def split(tile, PRECISION: tl.constexpr):
    """A tile as the sum of two; the second is not used where one product is precise enough."""
    if PRECISION == "tf32x3":
        high = rounded(tile)
        return high, rounded(tile - high)
    else:
        return tile, tile


@triton.jit
def hold(
    W,
    N: tl.constexpr,
    K: tl.constexpr,
    TILES: tl.constexpr,
    HELD: tl.constexpr,
    TRANSPOSED: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """The first HELD tiles of W, split, which the kernel reads once."""
    found = ()
    for index in tl.static_range(HELD):
        found = found + (split(read_tile(W, index, N, K, TILES, TRANSPOSED), PRECISION),)
    return found


@triton.jit
def find_tile(
    W,
    held,
    index: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    TILES: tl.constexpr,
    HELD: tl.constexpr,
    TRANSPOSED: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Tile `index` of W, split: one of the held tiles, or read from memory."""
    if index < HELD:
        return held[index]
    else:
        return split(read_tile(W, index, N, K, TILES, TRANSPOSED), PRECISION)


@triton.jit
def product(
    z,
    h,
    W,
    held,
    gate: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    TILES: tl.constexpr,
    HELD: tl.constexpr,
    TRANSPOSED: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Tiles of z + h W_gate^T when TRANSPOSED, else of z + h W_gate.

    A tensor core rounds its sums toward zero, so that long sums would make states shrink. The products of every pair of
    tiles are therefore summed from zero, the small ones first, and these sums are added in float32 outside the tensor
    core (Ootomo & Yokota 2022, "Recovering single precision accuracy from Tensor Cores while surpassing the FP32
    theoretical peak performance").
    """
    halves = ()
    for i in tl.static_range(TILES):
        halves = halves + (split(h[i], PRECISION),)
    found = ()
    for j in tl.static_range(TILES):
        total = z[j]
        for i in tl.static_range(TILES):
            tile = find_tile(W, held, (gate * TILES + i) * TILES + j, N, K, TILES, HELD, TRANSPOSED, PRECISION)
            if PRECISION == "tf32x3":
                part = tl.dot(halves[i][1], tile[0], input_precision="tf32")
                part = tl.dot(halves[i][0], tile[1], part, input_precision="tf32")
                total += tl.dot(halves[i][0], tile[0], part, input_precision="tf32")
            else:
                total = tl.dot(h[i], tile[0], total, input_precision=PRECISION, out_dtype=total.dtype)
        found = found + (total,)
    return found


@triton.jit
def tanh(z):
    """The hyperbolic tangent, from exp; near zero, where that cancels, from seven levels of Lambert's fraction."""
    q = z * z
    near = z * (135135 + q * (17325 + q * (378 + q))) / (135135 + q * (62370 + q * (3150 + q * 28)))
    e = tl.exp(-2 * tl.abs(z))
    far = (1 - e) / (1 + e)
    return tl.where(tl.abs(z) < 0.6, near, tl.where(z < 0, -far, far))


@triton.jit
def kept(z, b, ACTIVATION: tl.constexpr, SLOPE: tl.constexpr):
    """What is saved for the backward pass: act(z), but for abs, which loses the sign, z itself. NaN stays NaN."""
    if ACTIVATION == "modrelu":
        size = tl.abs(z) + b
        size = tl.where(size < 0, 0.0, size)
        return tl.where(z < 0, -size, tl.where(z == 0, z, size))
    elif ACTIVATION == "relu":
        return tl.where(z < 0, 0.0, z)
    elif ACTIVATION == "leaky_relu":
        return tl.where(z < 0, z * SLOPE, z)
    elif ACTIVATION == "tanh":
        return tanh(z)
    else:
        return z


@triton.jit
def value(a, ACTIVATION: tl.constexpr):
    """act(z) from what `kept` returned."""
    if ACTIVATION == "abs":
        return tl.abs(a)
    else:
        return a


@triton.jit
def derivative(a, ACTIVATION: tl.constexpr, SLOPE: tl.constexpr):
    """act'(z) from what `kept` returned; at a kink the convention is torch's."""
    one = tl.zeros_like(a) + 1
    if ACTIVATION == "modrelu":
        return tl.where(a == 0, 0.0, one)
    elif ACTIVATION == "relu":
        return tl.where(a > 0, one, 0.0)
    elif ACTIVATION == "leaky_relu":
        return tl.where(a > 0, one, one * SLOPE)
    elif ACTIVATION == "tanh":
        return 1 - a * a
    else:
        return tl.where(a < 0, -one, tl.where(a > 0, one, 0.0))
