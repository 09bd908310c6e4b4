"""Reverses written by hand have no derivative of their own, which torch.autograd would take for zero in silence."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor

BackwardMethod = Callable[..., Any]


def first_only(way_out: str) -> Callable[[BackwardMethod], BackwardMethod]:
    """For the `backward` of an autograd Function: what it returns raises a RuntimeError where it is differentiated.

    Torch's `once_differentiable` notices that only where the gradient from outside needs one itself: a Hessian, or a
    penalty on the gradient, of a loss that is linear in the outputs would lack terms. A Function that saves no input
    or output is refused where such a graph is asked for.

    Args:
        way_out: what a user can do, as the end of a sentence.
    """

    def decorate(backward: BackwardMethod) -> BackwardMethod:
        @wraps(backward)
        def once(ctx: Any, *gradients: Any) -> Any:
            if not torch.is_grad_enabled():  # it is in a reverse with create_graph=True alone
                return backward(ctx, *gradients)
            with torch.no_grad():
                found = backward(ctx, *gradients)
            message = f"second derivatives (create_graph=True) are not to be had here: {way_out}."
            origins = [t for t in ctx.saved_tensors if t is not None and t.requires_grad]
            if not origins:
                raise RuntimeError(message)
            origins += [g for g in gradients if g is not None and g.requires_grad]
            parts = found if isinstance(found, tuple) else (found,)
            marked = tuple(None if part is None else _Final.apply(message, part, *origins) for part in parts)
            return marked if isinstance(found, tuple) else marked[0]

        return once

    return decorate


class _Final(torch.autograd.Function):
    """(message, gradient, *what it depends on) -> gradient, which cannot be differentiated."""

    generate_vmap_rule = True

    @staticmethod
    def forward(message: str, gradient: Tensor, *origins: Tensor) -> Tensor:
        return gradient.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.message = inputs[0]

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        raise RuntimeError(ctx.message)
