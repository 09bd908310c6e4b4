"""Complex numbers as pairs of real ones, and their parts."""

from typing import Any

import torch
from torch import Tensor

from orthobench.parametrizations.traced import differentiating, traced, transforms


def times(pairs: Tensor, re: Tensor, im: Tensor) -> Tensor:
    """Products (..., N, 2) of pairs and re + i im, (..., N) each; with a cosine and a sine the pairs turned."""
    x, y = pairs.unbind(-1)
    return torch.stack([re * x - im * y, re * y + im * x], dim=-1)


def parts(h: Tensor, imaginary: bool) -> Tensor:
    """Re h (..., N), or [Re h, Im h] (..., 2N) if the imaginary parts are wanted, too.

    The gradient of torch's own views is made of zeros into which one part after the other is copied. Where nothing
    looks on or transforms, it is written at once, in the order of the memory of h.
    """
    watched = torch.compiler.is_compiling() or traced(h) or transforms() or differentiating()
    if watched or not h.requires_grad:
        return _parts(h, imaginary)
    return _Parts.apply(h, imaginary)


def _parts(h: Tensor, imaginary: bool) -> Tensor:
    return torch.cat([h.real, h.imag], dim=-1) if imaginary else h.real


class _Parts(torch.autograd.Function):
    """(h, imaginary) -> its parts."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, imaginary: bool) -> Tensor:
        ctx.kind = h.dtype, imaginary
        if h.dim() == 3 and h.stride(0) < h.stride(1):
            return _parts(h.transpose(0, 1), imaginary).clone(memory_format=torch.contiguous_format).transpose(0, 1)
        return _parts(h, imaginary).clone(memory_format=torch.contiguous_format)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        kind, imaginary = ctx.kind
        return torch.complex(*dy.chunk(2, dim=-1)) if imaginary else dy.to(kind), None
