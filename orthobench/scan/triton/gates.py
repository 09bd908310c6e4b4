"""Steps of gated units without their products, on tiles of one sequence; see gru.py and lstm.py."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportGeneralTypeIssues=false

import triton
import triton.language as tl

from orthobench.scan.triton.activations import derivative, kept, signed_by, tanh, value


@triton.jit
def sigmoid(z, TILES: tl.constexpr):
    """The logistic function of every tile of z."""
    found = ()
    for j in tl.static_range(TILES):
        found = found + (1 / (1 + tl.exp(-z[j])),)
    return found


@triton.jit
def tanhs(z, TILES: tl.constexpr):
    """The hyperbolic tangent of every tile of z."""
    found = ()
    for j in tl.static_range(TILES):
        found = found + (tanh(z[j]),)
    return found


@triton.jit
def times(a, b, TILES: tl.constexpr):
    """A b, element by element."""
    found = ()
    for j in tl.static_range(TILES):
        found = found + (a[j] * b[j],)
    return found


@triton.jit
def add_product(p, a, b, TILES: tl.constexpr):
    """P + a b, element by element."""
    found = ()
    for j in tl.static_range(TILES):
        found = found + (p[j] + a[j] * b[j],)
    return found


@triton.jit
def add_scaled(p, a, b, TILES: tl.constexpr):
    """P + a b for a number a."""
    found = ()
    for j in tl.static_range(TILES):
        found = found + (p[j] + a * b[j],)
    return found


@triton.jit
def add_signed(db, dz, a, TILES: tl.constexpr):
    """The gradient of modReLU's bias with what dz adds to it."""
    found = ()
    for j in tl.static_range(TILES):
        found = found + (db[j] + signed_by(dz[j], a[j]),)
    return found


@triton.jit
def update(z, u, h, b, ACTIVATION: tl.constexpr, SLOPE: tl.constexpr, TILES: tl.constexpr):
    """Part of the candidate that is kept, and the new state."""
    c, new = (), ()
    for j in tl.static_range(TILES):
        c_j = kept(z[j], b[j], ACTIVATION, SLOPE)
        a_j = value(c_j, ACTIVATION)
        c, new = c + (c_j,), new + (a_j + u[j] * (h[j] - a_j),)
    return c, new


@triton.jit
def reverse_update(G, outside, h, u, c, ACTIVATION: tl.constexpr, SLOPE: tl.constexpr, TILES: tl.constexpr):
    """From dL/dh_t, and the outer gradient of h_{t-1}: dz_u, dz_c, and of dL/dh_{t-1} what passes no matrix."""
    dz_u, dz_c, old = (), (), ()
    for j in tl.static_range(TILES):
        dz_u = dz_u + (G[j] * (h[j] - value(c[j], ACTIVATION)) * u[j] * (1 - u[j]),)
        dz_c = dz_c + (G[j] * (1 - u[j]) * derivative(c[j], ACTIVATION, SLOPE),)
        old = old + (outside[j] + G[j] * u[j],)
    return dz_u, dz_c, old


@triton.jit
def reverse_gate(d, x, r, TILES: tl.constexpr):
    """dz_r of r x, from its gradient d."""
    found = ()
    for j in tl.static_range(TILES):
        found = found + (d[j] * x[j] * r[j] * (1 - r[j]),)
    return found


@triton.jit
def zeros(like, TILES: tl.constexpr):
    """Tiles of zeros."""
    found = ()
    for j in tl.static_range(TILES):
        found = found + (tl.zeros_like(like[j]),)
    return found
