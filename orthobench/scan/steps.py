"""Outputs of some steps alone: shapes (B, K), where each sequence has K steps of its own."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def at_steps(h: "Tensor", steps: "Tensor | None") -> "Tensor":
    """Rows (B, K, ...) of h (B, T, ...) at the steps (B, K), different ones in every sequence; h where None."""
    if steps is None:
        return h
    return h.gather(1, steps.reshape(*steps.shape, *(1,) * (h.dim() - 2)).expand(-1, -1, *h.shape[2:]))


def marks(steps: "Tensor", T: int) -> "Tensor":
    """Marks (B, T), true at `steps` (B, K)."""
    return steps.new_zeros(len(steps), T).scatter_(1, steps, 1).bool()
