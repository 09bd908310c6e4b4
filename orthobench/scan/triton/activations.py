"""Activations by what is kept of them for the backward pass, and the hyperbolic tangent."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportGeneralTypeIssues=false

import triton
import triton.language as tl


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
    """Value saved for the backward pass: act(z), but for abs, which loses the sign, z itself. NaN stays NaN."""
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
def signed_by(dz, a):
    """The part of dz that modReLU's bias gets, by the activation's value a."""
    return tl.where(a > 0, dz, tl.where(a < 0, -dz, dz * a))


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
