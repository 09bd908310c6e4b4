"""Activations of the fused engine: in place, and with a hand-written derivative.

Every derivative is computed from the activation's value a alone, not from its argument z: the sign of a tells on which
side of the kink z was. Only abs loses that sign, so its signs are kept in one byte each.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from importlib import import_module
from typing import Any, NamedTuple

import torch
from torch import Tensor

from orthobench.cells.activations import Activation
from orthobench.common.terminal import complain
from orthobench.errors import is_exhaustion
from orthobench.scan.gpu import triton_here

Forward = Callable[[Tensor, Tensor, Tensor | None], object]
Backward = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor | None], object]


class Pointwise(NamedTuple):
    """An activation over blocks (B, N) small enough to stay in cache.

    Attributes:
        forward_: (z, scratch, signs) -> a in place of z; the signs are written where there is room for them.
        backward: (da, a, dz, scratch, signs) writes dz = da act'(z).
    """

    forward_: Forward
    backward: Backward


def pointwise(
    name: Activation, b: Any = None, slope: float = 0.1, db: Any = None, like: Tensor | None = None
) -> Pointwise:
    """The activation `name` with modReLU's bias b, a tensor (N,), or leaky ReLU's slope.

    The backward function of modReLU adds the bias's gradient to the tensor db (B, N), one row per sequence. Where
    Triton's kernels can run on the device and dtype of `like`, each function is one kernel.
    """
    if like is not None and in_one_kernel(like):
        from orthobench.scan.triton import pointwise as in_triton

        return Pointwise(*in_triton.pair(name, b, slope, db))
    match name:
        case "modrelu":
            return Pointwise(partial(_modrelu_, b), partial(_modrelu_backward, db))
        case "relu":
            return Pointwise(_relu_, _relu_backward)
        case "leaky_relu":
            return Pointwise(partial(_leaky_relu_, slope), partial(_leaky_relu_backward, slope))
        case "abs":
            return Pointwise(_abs_, _abs_backward)
        case "tanh":
            return Pointwise(_tanh_, _tanh_backward)


def in_one_kernel(like: Tensor) -> bool:
    """Return True if an activation is one kernel of Triton there: on a GPU where the package triton can compile."""
    return like.is_cuda and triton_here.missing(like.device, like.dtype) is None and _compiles(like.device, like.dtype)


@lru_cache
def _compiles(device: torch.device, dtype: torch.dtype) -> bool:
    """Return True if a kernel runs there, which is tried once; else say why none does."""
    try:
        z = torch.zeros(1, 1, device=device, dtype=dtype)
        import_module("orthobench.scan.triton.pointwise").forward_("relu", None, 0.0, z, z, None)
    except Exception as error:
        if is_exhaustion(error):
            raise
        problem = f"{type(error).__name__}: {str(error).split(chr(10))[0]}"
        complain(f"orthobench: Triton's kernels fail here ({problem}), so activations are torch's operations.")
        return False
    return True


def room_for_signs(name: Activation, A: Tensor, training: bool) -> Tensor | None:
    """A byte for every value of A (T, B, N); None where the backward pass needs no signs."""
    return torch.empty_like(A, dtype=torch.int8) if name == "abs" and training else None


def _modrelu_(b: Tensor, z: Tensor, scratch: Tensor, signs: Tensor | None) -> None:
    torch.sign(z, out=scratch)
    z.abs_().add_(b).relu_().mul_(scratch)


def _modrelu_backward(db: Tensor, da: Tensor, a: Tensor, dz: Tensor, scratch: Tensor, signs: Tensor | None) -> None:
    """Differentiate a = sign(z) (|z| + b) where it is active, else 0: da/db = sign(a) and da/dz = sign(a)^2."""
    torch.sign(a, out=scratch)
    torch.mul(da, scratch, out=dz)
    db.add_(dz)
    dz.mul_(scratch)


def _relu_(z: Tensor, scratch: Tensor, signs: Tensor | None) -> None:
    z.relu_()


def _relu_backward(da: Tensor, a: Tensor, dz: Tensor, scratch: Tensor, signs: Tensor | None) -> None:
    torch.ops.aten.threshold_backward.grad_input(da, a, 0, grad_input=dz)


def _leaky_relu_(slope: float, z: Tensor, scratch: Tensor, signs: Tensor | None) -> None:
    torch.ops.aten.leaky_relu_(z, slope)


def _leaky_relu_backward(
    slope: float, da: Tensor, a: Tensor, dz: Tensor, scratch: Tensor, signs: Tensor | None
) -> None:
    torch.ops.aten.leaky_relu_backward.grad_input(da, a, slope, True, grad_input=dz)


def _abs_(z: Tensor, scratch: Tensor, signs: Tensor | None) -> None:
    if signs is not None:
        torch.sign(z, out=scratch)
        signs.copy_(scratch)
    z.abs_()


def _abs_backward(da: Tensor, a: Tensor, dz: Tensor, scratch: Tensor, signs: Any) -> None:
    scratch.copy_(signs)
    torch.mul(da, scratch, out=dz)


def _tanh_(z: Tensor, scratch: Tensor, signs: Tensor | None) -> None:
    z.tanh_()


def _tanh_backward(da: Tensor, a: Tensor, dz: Tensor, scratch: Tensor, signs: Tensor | None) -> None:
    torch.ops.aten.tanh_backward.grad_input(da, a, grad_input=dz)
