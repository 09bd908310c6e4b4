"""Refusing second derivatives of hand-written backward passes, which torch.autograd would silently take to be zero."""

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import torch
from torch import Tensor

BackwardMethod = Callable[..., Any]


def first_only(way_out: str) -> Callable[[BackwardMethod], BackwardMethod]:
    """A decorator for the `backward` of an autograd Function: differentiating what it returns raises a RuntimeError.

    Torch's `once_differentiable` notices this only where the incoming gradient itself needs a gradient: a Hessian of a
    loss that is linear in the outputs, or a penalty on its gradient, would silently lack terms. A Function that saves
    no input or output raises at once when create_graph=True.

    Args:
        way_out: what a user can do, as the end of a sentence.
    """

    def decorate(backward: BackwardMethod) -> BackwardMethod:
        @wraps(backward)
        def once(ctx: Any, *gradients: Any) -> Any:
            if not torch.is_grad_enabled():  # it is enabled only in a backward pass with create_graph=True
                return _one_at_a_time(partial(backward, ctx), way_out, *gradients)
            with torch.no_grad():
                found = backward(ctx, *gradients)
            message = f"second derivatives (create_graph=True) are not available here: {way_out}."
            origins = [t for t in ctx.saved_tensors if t is not None and t.requires_grad]
            if not origins:
                raise RuntimeError(message)
            origins += [g for g in gradients if g is not None and g.requires_grad]
            parts = found if isinstance(found, tuple) else (found,)
            marked = tuple(None if part is None else _Final.apply(message, part, *origins) for part in parts)
            return marked if isinstance(found, tuple) else marked[0]

        return once

    return decorate


def _one_at_a_time(backward: BackwardMethod, way_out: str, *gradients: Any) -> Any:
    """Call `backward`; where torch maps it over several gradients and it cannot be mapped, raise one sentence."""
    try:
        return backward(*gradients)
    except RuntimeError as error:
        if not any(g is not None and torch._C._functorch.is_legacy_batchedtensor(g) for g in gradients):  # type: ignore[attr-defined]
            raise
        several = "several gradients at once (is_grads_batched=True, or vectorize=True) are not available here"
        raise RuntimeError(f"{several}: {way_out}.") from error


class _Final(torch.autograd.Function):
    """(message, gradient, *tensors that it depends on) -> gradient, whose own backward raises `message`."""

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
