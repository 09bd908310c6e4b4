"""Complex states whose matrix is applied factor by factor, in C, at a cost that grows with n or n log n.

The backward pass repeats the product of every step, so that only the states are kept.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from orthobench.parametrizations.derivatives import first_only
from orthobench.parametrizations.givens import Givens
from orthobench.parametrizations.unitary_product import UnitaryProduct
from orthobench.scan.fused.elman import Gradients, first_gradient
from orthobench.scan.native.library import call, lanes, outer_room, pack, readable, room

APART, WINDOW = 8, 128  # the values of the same names in lanes.h
UNITS_PER_LAYER = 4  # measured on one core, B=50: both are equally fast near 24 layers at n=128, past 128 at n=512


class PackedFactors(NamedTuple):
    """A matrix as the loops `<family>_forward` and `<family>_backward` read it.

    Attributes:
        family: rotations or fourier.
        values: the real numbers, flat, that get gradients: angles first.
        plan: int64, the order in which they are applied.
        tables: cosines and sines of the angles, then roots of unity.
        waves: how many states of scratch the reverse of one product needs.
    """

    family: str
    values: Tensor
    plan: Tensor
    tables: Tensor
    waves: int


def factors(W: Any, dtype: torch.dtype) -> PackedFactors | None:
    """The factors of a parametrization in a real dtype; None where C has no loop or a dense product is faster.

    Raises:
        ValueError: a parameter has another size than its matrix needs.
    """
    if type(W) is Givens:
        return _rotations(W, dtype) if W.n >= UNITS_PER_LAYER * W.L else None
    return _fourier(W, dtype) if type(W) is UnitaryProduct else None


def _rotations(W: Givens, dtype: torch.dtype) -> PackedFactors:
    theta = W.theta
    phi, omega = (W.phi, W.omega) if W.complex else (torch.zeros_like(theta), theta.new_zeros(W.n))
    pairs = torch.stack([W.first, W.second], dim=1) % W.n
    for name, angles, size in (("theta", theta, len(pairs)), ("phi", phi, len(pairs)), ("omega", omega, W.n)):
        _refuse_other(W, name, angles, (size,))
    values = torch.cat([torch.stack([theta, phi], dim=1).flatten(), omega])
    plan = torch.cat([torch.tensor([len(pairs)]), pairs.flatten()])
    return PackedFactors("rotations", values.to(dtype), plan, _turns(values).to(dtype), 1)


def _turns(angles: Tensor) -> Tensor:
    """Cosine and sine of every angle, flat, in float64."""
    angles = angles.detach().double()
    return torch.stack([angles.cos(), angles.sin()], dim=1).flatten()


def _refuse_other(W: Any, name: str, found: Tensor, size: tuple[int, ...]) -> None:
    if found.shape != size:
        raise ValueError(f"{type(W).__name__} of size {W.n} has {name} of the shape {tuple(found.shape)}, not {size}.")


def _fourier(W: UnitaryProduct, dtype: torch.dtype) -> PackedFactors:
    n, stages = W.n, radices(W.n)
    _refuse_other(W, "theta", W.theta, (3, n))
    _refuse_other(W, "v", W.v, (2, 2, n))
    order = _order(n)
    first, middle, last = W.theta
    v, w = (W.v.double() / torch.linalg.vector_norm(W.v.double(), dim=(1, 2), keepdim=True)).to(dtype)
    angles = torch.cat([first, middle[order], last])
    turns = _turns(angles)
    turns[2 * n : 4 * n] /= n
    places = torch.empty_like(order).index_copy(0, order, torch.arange(n))
    plan = torch.cat([places[W.permutation[order]], torch.tensor([len(stages), *stages])])
    values = torch.cat([angles.to(dtype), v[:, order].flatten(), w.flatten()])
    return PackedFactors("fourier", values, plan, torch.cat([turns, _roots(n)]).to(dtype), 2)


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


def _order(n: int) -> Tensor:
    """The frequencies of a transform in the order in which its stages leave them in memory."""
    return torch.from_numpy(np.arange(n).reshape(radices(n)[::-1]).T.ravel())


@lru_cache(maxsize=8)
def _roots(n: int) -> Tensor:
    """Factors by which the stages of a transform multiply, in float64."""
    parts, m = [], n
    for r in radices(n):
        m //= r
        turns = 2 * np.pi * np.arange(r) / r
        twiddles = np.exp(-2j * np.pi * np.outer(np.arange(m), np.arange(r)) / (r * m))
        parts += [np.cos(turns), np.sin(turns), np.ascontiguousarray(twiddles).view(np.float64).ravel()]
    return torch.from_numpy(np.concatenate([np.zeros(0), *parts]))


class FactoredScan(torch.autograd.Function):
    """(given, V, values, b, h_0, epsilon, factors) -> (h_TBN, h_T).

    `given` is the projection p_TBN, whose place h takes in memory, where V is None. Otherwise it is the inputs x_TBI,
    which C projects by V (2N, I), whose rows are the real and the imaginary part of each unit in turn; or the places of
    columns of V, tokens (T, B).
    """

    @staticmethod
    def forward(
        ctx: Any,
        given: Tensor,
        V: Tensor | None,
        values: Tensor,
        b: Tensor,
        h0: Tensor,
        epsilon: float,
        factors: PackedFactors,
    ) -> tuple[Tensor, Tensor]:
        h0, b, values = h0.resolve_conj().contiguous(), b.contiguous(), values.contiguous()
        x = tokens = U = None
        if V is None:
            H = given.data
        else:
            is_x = given.is_floating_point()
            if len(V) != 2 * h0.shape[1] or (is_x and V.shape[1] != given.shape[-1]):
                shapes = f"inputs {tuple(given.shape)} and a matrix {tuple(V.shape)} do not fit"
                raise ValueError(f"{shapes} {h0.shape[1]} complex units.")
            H = room(h0.expand(len(given), -1, -1))
            x, tokens = (given.resolve_neg().contiguous(), None) if is_x else (None, given)
            U = _in_lanes(V) if is_x else V.T.contiguous()
        settings = {"slope": epsilon, "parameters": len(values), "I": 0 if V is None else V.shape[1]}
        tensors = {"plan": factors.plan, "factors": values, "tables": factors.tables}
        scratch = (settings["I"] + 2 + 8 * (H.shape[-1] + APART)) * lanes(values.dtype)
        inputs = {"x": x, "tokens": tokens, "U": U}
        _call(f"{factors.family}_forward", H, settings, (), scratch, P=H, h0=h0, b=b, **tensors, **inputs)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(H, h0, b, values, x, tokens, V)
        ctx.settings, ctx.factors = settings, factors
        return H, H[-1].clone()

    @staticmethod
    @first_only("use engine=reference")
    def backward(ctx: Any, dH: Tensor | None, dlast: Tensor | None) -> Gradients:  # type: ignore[override]
        H, h0, b, values, x, tokens, V = ctx.saved_tensors
        (B, N), I = h0.shape, ctx.settings["I"]
        dH, G = readable(dH), first_gradient(H, dH, dlast)
        sums = {"db": values.new_empty(B, N), "dfactors": values.new_empty(B, len(values))}
        inputs = {"x": x, "tokens": tokens}
        tensors = {"plan": ctx.factors.plan, "factors": values, "tables": ctx.factors.tables, **inputs}
        scratch = (len(values) + (9 + 2 * ctx.factors.waves) * (N + APART)) * lanes(values.dtype)
        weights, dZ, dx, dU = (), None, None, None
        if V is None:
            dZ = room(H)
        else:
            dU = values.new_zeros(-(-B // lanes(values.dtype)), I, 2 * N)
            if x is not None and ctx.needs_input_grad[0]:
                weights, dx = (pack(V),), torch.empty_like(x, memory_format=torch.contiguous_format)
            scratch += WINDOW * 2 * (N + I) + outer_room(2 * N, values.dtype) + lanes(values.dtype)
        name = f"{ctx.factors.family}_backward"
        made = {"dH": dH, "dZ": dZ, "G": G, "dx": dx, "dU": dU}
        _call(name, H, ctx.settings, weights, scratch, P=H, h0=h0, b=b, **tensors, **made, **sums)
        dV = None if dU is None else dU.sum(0).T
        return dZ if V is None else dx, dV, sums["dfactors"].sum(0), sums["db"].sum(0), G, None, None


def _call(
    name: str, H: Tensor, settings: dict[str, Any], weights: tuple[Tensor, ...], scratch: int, **tensors: Any
) -> None:
    call(name, H, settings, weights, scratch, lanes(H.dtype.to_real()), **tensors)


def _in_lanes(V: Tensor) -> Tensor:
    """V (2N, I) as lanes.h reads it: (parts of the units, I, lanes)."""
    width = lanes(V.dtype)
    filled = F.pad(V, (0, 0, 0, -len(V) % width))
    return filled.unflatten(0, (-1, width)).transpose(1, 2).contiguous()
