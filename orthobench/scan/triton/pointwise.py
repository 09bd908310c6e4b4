"""An activation and its derivative in one kernel each, for loops of small kernels on a GPU; see fused/pointwise.py.

A step of an Elman loop is then one product and one kernel forward, and one kernel, one copy and one product backward.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false

from functools import partial
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from orthobench.scan.triton.activations import derivative, kept, value

BLOCK = 1024


def forward_(name: str, b: Tensor | None, slope: float, z: Tensor, scratch: Tensor, signs: Tensor | None) -> None:
    """Write act(z) in place of z (B, N), and the signs of z where there is room for them; scratch is not used."""
    key = {"ACTIVATION": name, "SLOPE": slope, "SIGNED": signs is not None, "BLOCK": BLOCK}
    _launch(activate_, (z, b, signs), z, key)


def backward(
    name: str, slope: float, db: Tensor, da: Tensor, a: Tensor, dz: Tensor, scratch: Tensor, signs: Tensor | None
) -> None:
    """Write dz = da act'(z) for tensors (B, N); for modReLU add its bias's gradient, a row per sequence, to db."""
    _launch(reverse, (da, a, signs, dz, db), a, {"ACTIVATION": name, "SLOPE": slope, "BLOCK": BLOCK})


def pair(name: str, b: Tensor | None, slope: float, db: Any) -> tuple[Any, Any]:
    """The two functions for an activation, as `fused.pointwise.Pointwise` holds them."""
    return partial(forward_, name, b, slope), partial(backward, name, slope, db)


def _launch(kernel: Any, tensors: tuple[Tensor | None, ...], like: Tensor, key: dict[str, Any]) -> None:
    with torch.cuda.device_of(like):
        kernel[(triton.cdiv(like.numel(), BLOCK),)](*tensors, like.numel(), N=like.shape[-1], **key)


@triton.jit(do_not_specialize=["size"])
def activate_(
    Z,
    bias,
    signs,
    size,
    N: tl.constexpr,
    ACTIVATION: tl.constexpr,
    SLOPE: tl.constexpr,
    SIGNED: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """act(z) in place of z."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    z = tl.load(Z + at, mask=inside, other=0.0)
    b = z
    if ACTIVATION == "modrelu":
        b = tl.load(bias + at % N, mask=inside, other=0.0)
    a = kept(z, b, ACTIVATION, SLOPE)
    tl.store(Z + at, value(a, ACTIVATION), mask=inside)
    if SIGNED:
        tl.store(signs + at, tl.where(z > 0, 1, tl.where(z < 0, -1, 0)).to(tl.int8), mask=inside)


@triton.jit(do_not_specialize=["size"])
def reverse(
    dA,
    A,
    signs,
    dZ,
    db,
    size,
    N: tl.constexpr,
    ACTIVATION: tl.constexpr,
    SLOPE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Dz = da act'(z) from the activation's value; the bias's gradient is added to db."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    da = tl.load(dA + at, mask=inside, other=0.0)
    if ACTIVATION == "abs":
        a = tl.load(signs + at, mask=inside, other=0).to(da.dtype)
    else:
        a = tl.load(A + at, mask=inside, other=0.0)
    tl.store(dZ + at, da * derivative(a, ACTIVATION, SLOPE), mask=inside)
    if ACTIVATION == "modrelu":
        signed = tl.where(a > 0, da, tl.where(a < 0, -da, da * a))
        tl.store(db + at, tl.load(db + at, mask=inside, other=0.0) + signed, mask=inside)
