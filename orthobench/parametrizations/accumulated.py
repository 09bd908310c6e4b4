"""Clipping or scaling a matrix's own gradient where one step has the gradients of several backward passes."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn


class Accumulated(nn.Module):
    """A map f of a gradient, to be registered as a tensor's hook.

    The k-th backward pass before a step returns f(G_1 + ... + G_k) - f(G_1 + ... + G_{k-1}), so that the sum over all
    of them is f of the whole gradient.

    Attributes:
        several: whether a step has several backward passes; the code that sets it must call `clear` after every step.

    Args:
        f: takes a gradient and returns one of the same shape.
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
        """Start the sum of the next step."""
        if self._total is not None:
            self._total.zero_()


def accumulated(model: nn.Module) -> list[Any]:
    """All `Accumulated` modules of a model."""
    return [module for module in model.modules() if isinstance(module, Accumulated)]
