"""Clipping or scaling a matrix's own gradient, where several reverses add up to the gradient of one step."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn


class Accumulated(nn.Module):
    """A map f of a gradient, to be registered as a tensor's hook.

    Of several reverses before a step the k-th sends on f(G_1 + ... + G_k) - f(G_1 + ... + G_{k-1}), so that what they
    add up to is f of the whole gradient.

    Attributes:
        several: whether a step has several reverses; whoever says so calls `clear` after every step.

    Args:
        f: from a gradient to one of the same shape.
    """

    def __init__(self, f: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.f, self.several = f, False
        self._total: Tensor | None = None

    def forward(self, G: Tensor) -> Tensor:
        if not self.several:
            return self.f(G)
        with torch.no_grad():
            total = torch.zeros_like(G) if self._total is None else self._total
            self._total = total
            before = self.f(total)
            return self.f(total.add_(G)) - before

    def clear(self) -> None:
        """Begin a new sum."""
        if self._total is not None:
            self._total.zero_()


def accumulated(model: nn.Module) -> list[Any]:
    """All of a model's."""
    return [module for module in model.modules() if isinstance(module, Accumulated)]
