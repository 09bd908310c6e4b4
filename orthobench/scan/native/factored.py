"""Complex states whose matrix is applied factor by factor, in C, at a cost that grows with n or n log n.

The backward pass repeats the product of every step, so that only the states are kept.
"""

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from orthobench.parametrizations.derivatives import first_only
from orthobench.parametrizations.givens import Givens
from orthobench.parametrizations.unitary_product import UnitaryProduct
from orthobench.scan.fused.elman import Gradients, first_gradient
from orthobench.scan.native.library import call, lanes, readable, room

APART = 8  # the value of the same name in lanes.h
UNITS_PER_LAYER = 4  # measured on one core, B=50: both are equally fast near 24 layers at n=128, past 128 at n=512


class PackedFactors(NamedTuple):
    """A matrix as the loops `<family>_forward` and `<family>_backward` read it.

    Attributes:
        family: rotations or fourier.
        values: the real numbers, flat, that get gradients.
        plan: int64, the order in which they are applied.
        tables: roots of unity; null for rotations.
        waves: how many states of scratch the reverse of one product needs.
    """

    family: str
    values: Tensor
    plan: Tensor
    tables: Tensor | None
    waves: int


def factors(W: Any, dtype: torch.dtype) -> PackedFactors | None:
    """The factors of a parametrization in a real dtype; null where C has no loop or a dense product is faster.

    Raises:
        ValueError: a parameter has another size than its matrix needs.
    """
    if type(W) is Givens:
        return _rotations(W, dtype) if W.n >= UNITS_PER_LAYER * W.L else None
    return _fourier(W, dtype) if type(W) is UnitaryProduct else None


def _rotations(W: Givens, dtype: torch.dtype) -> PackedFactors:
    own, other, *last = (factor.to(dtype.to_complex()) for factor in W.factors())
    final = last[0] if last else torch.ones_like(own[0])
    _refuse_other(W, "last phases", final)
    layers = torch.stack([own.real, own.imag, other.real, other.imag], dim=1)
    values = torch.cat([layers.flatten(), final.real, final.imag])
    return PackedFactors("rotations", values, torch.cat([torch.tensor([W.L]), W.partners.flatten()]), None, W.L)


def _refuse_other(W: Any, what: str, factor: Tensor) -> None:
    if factor.shape != (W.n,):
        raise ValueError(f"{type(W).__name__} of size {W.n} has {tuple(factor.shape)} {what}: it needs {W.n}.")


def _fourier(W: UnitaryProduct, dtype: torch.dtype) -> PackedFactors:
    (first, middle, last), (v, w) = W.factors()
    _refuse_other(W, "phases", first)
    root = math.sqrt(W.n)  # the unitary transforms divide by it, which is done in the diagonal before each
    rows = torch.stack([first / root, middle / root, last, v, w])
    stages = radices(W.n)
    plan = torch.cat([W.permutation, torch.tensor([len(stages), *stages])])
    return PackedFactors(
        "fourier", torch.view_as_real(rows).transpose(1, 2).to(dtype).flatten(), plan, _tables(W.n, dtype), 4
    )


def radices(n: int) -> tuple[int, ...]:
    """The radices of a transform of n points: as many eights as divide n, then a four or a two, then odd primes."""
    found, r = [], 8
    while n > 1:
        if n % r == 0:
            found.append(r)
            n //= r
        else:
            r = {8: 4, 4: 2, 2: 3}.get(r, r + 2)
    return tuple(found)


@lru_cache(maxsize=8)
def _tables(n: int, dtype: torch.dtype) -> Tensor:
    parts, m = [], n
    for r in radices(n):
        m //= r
        turns = 2 * np.pi * np.arange(r) / r
        twiddles = np.exp(-2j * np.pi * np.outer(np.arange(m), np.arange(r)) / (r * m))
        parts += [np.cos(turns), np.sin(turns), np.ascontiguousarray(twiddles).view(np.float64).ravel()]
    return torch.from_numpy(np.concatenate([np.zeros(0), *parts])).to(dtype)


class FactoredScan(torch.autograd.Function):
    """(p_TBN, values, b, h_0, epsilon, factors) -> (h_TBN, h_T); h takes p's place in memory."""

    @staticmethod
    def forward(
        ctx: Any, p_TBN: Tensor, values: Tensor, b: Tensor, h0: Tensor, epsilon: float, factors: PackedFactors
    ) -> tuple[Tensor, Tensor]:
        H, h0, b, values = p_TBN.data, h0.resolve_conj().contiguous(), b.contiguous(), values.contiguous()
        settings = {"slope": epsilon, "parameters": len(values)}
        tensors = {"plan": factors.plan, "factors": values, "tables": factors.tables}
        scratch = 6 * (H.shape[-1] + APART) * lanes(values.dtype)
        call(f"{factors.family}_forward", H, settings, (), scratch, P=H, h0=h0, b=b, **tensors)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(H, h0, b, values)
        ctx.settings, ctx.factors = settings, factors
        return H, H[-1].clone()

    @staticmethod
    @first_only("use engine=reference")
    def backward(ctx: Any, dH: Tensor | None, dlast: Tensor | None) -> Gradients:  # type: ignore[override]
        H, h0, b, values = ctx.saved_tensors
        B, N = h0.shape
        dH, dZ, G = readable(dH), room(H), first_gradient(H, dH, dlast)
        sums = {"db": values.new_empty(B, N), "dfactors": values.new_empty(B, len(values))}
        tensors = {"plan": ctx.factors.plan, "factors": values, "tables": ctx.factors.tables}
        scratch = (len(values) + (7 + 2 * ctx.factors.waves) * (N + APART)) * lanes(values.dtype)
        name = f"{ctx.factors.family}_backward"
        call(name, H, ctx.settings, (), scratch, P=H, h0=h0, b=b, dH=dH, dZ=dZ, G=G, **tensors, **sums)
        return dZ, sums["dfactors"].sum(0), sums["db"].sum(0), G, None, None
