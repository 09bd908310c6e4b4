"""Vectors at a mean square of one, with an output gate, or at length one, in C: `gated_norm` and `unit` of
`cells/heads.py`.

With x of n numbers, N = f w and f = 1 / sqrt(c |w|^2 + epsilon), where w is x, or x a(z) if the gate a comes first,

    y = scale N a(z), or scale N,   dw = f (dN - c (N . dN) N)
"""

from ctypes import c_double
from typing import Any

import torch
from torch import Tensor

from orthobench.cells.heads import EPSILON, SHORTEST_SQUARE
from orthobench.parametrizations.derivatives import first_only
from orthobench.scan.fused.elman import Gradients
from orthobench.scan.native.library import Struct, long, pointer

GATES = ("none", "silu", "sigmoid", "silu first")  # in the order of the enumeration in norm.c


class Norm(Struct):
    """The struct of the same name in norm.c."""

    _fields_ = (
        *((name, long) for name in ("R", "n", "gate")),
        *((name, c_double) for name in ("share", "epsilon")),
        *((name, pointer) for name in ("x", "z", "y", "scale", "dx", "dz", "dy", "dscale")),
    )


def gated_norm(
    x: Tensor, scale: Tensor, shown: Tensor | None = None, gate: str = "silu", first: bool = False
) -> Tensor:
    """See `cells.heads.gated_norm`; no sigmoid comes first."""
    how = "none" if shown is None else f"{gate} first" if first else gate
    z = None if shown is None else shown.contiguous()
    return Normed.apply((GATES.index(how), 1 / max(x.shape[-1], 1), EPSILON), x.contiguous(), z, scale.contiguous())


def unit(x: Tensor) -> Tensor:
    """See `cells.heads.unit`."""
    return Normed.apply((GATES.index("none"), 1.0, SHORTEST_SQUARE), x.contiguous(), None, None)


class Normed(torch.autograd.Function):
    """((gate, c, epsilon), x (B, ..., n), z as x or None, scale (n) or None) -> y, as x; it saves its arguments."""

    @staticmethod
    def forward(ctx: Any, how: tuple[int, float, float], *own: Any) -> Tensor:
        y, ctx.how = torch.empty_like(own[0]), how
        _run("forward", how, *own, y=y)
        ctx.save_for_backward(*own)
        return y

    @staticmethod
    @first_only("use engine=reference")
    def backward(ctx: Any, dy: Tensor) -> Gradients:  # type: ignore[override]
        x, z, scale = ctx.saved_tensors
        dx, dz = torch.empty_like(x), None if z is None else torch.empty_like(z)
        dscale = None if scale is None else x.new_zeros(len(x), len(scale))
        _run("backward", ctx.how, x, z, scale, dy=dy.contiguous(), dx=dx, dz=dz, dscale=dscale)
        return None, dx, dz, None if dscale is None else dscale.sum(0)


def _run(
    way: str,
    how: tuple[int, float, float],
    x: Tensor,
    z: Tensor | None,
    scale: Tensor | None,
    **tensors: Tensor | None,
) -> None:
    """Call the loops for all sequences.

    Raises:
        ValueError: shapes that do not fit each other.
    """
    n = x.shape[-1]
    given, fitting = [None if one is None else tuple(one.shape) for one in (z, scale)], (tuple(x.shape), (n,))
    if any(shape not in (None, fit) for shape, fit in zip(given, fitting, strict=True)):
        raise ValueError(f"numbers {fitting[0]}, those of a gate {given[0]} and a scale {given[1]} do not fit.")
    gate, share, epsilon = how
    norm = Norm(x[:1].numel() // max(n, 1), n, gate, share, epsilon)
    norm.run(f"norm_{way}", len(x), x, norm.scratch("norm", way, x.dtype), x=x, z=z, scale=scale, **tensors)
