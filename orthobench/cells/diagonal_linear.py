"""Recurrences that are linear in the state and act on every unit by itself: h_t = a_t * h_{t-1} + b_t.

a_t and b_t depend on the input alone, so that they are computed for all steps at once and an engine needs no more than
one scan.
"""

from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor

from orthobench.cells.base import Cell, Matrices, State


class DiagonalLinear(Cell):
    """Cell whose recurrence is linear in the state, unit by unit: h_t = a_t * h_{t-1} + b_t.

    A subclass defines `coefficients`, and `read` where a step shows something else than its state. The state is h (N,),
    real or complex, and there is no recurrent matrix.
    """

    matrix_names: tuple[str, ...] | None = ()

    @abstractmethod
    def coefficients(self, p: Tensor, W: Matrices) -> tuple[Tensor, Tensor]:
        """Factor a and term b, (..., N) or what broadcasts to it, from projections p (..., M) and W of `matrices`."""

    def read(self, h: Tensor, p: Tensor, W: Matrices) -> Tensor:
        """Output (..., F) of states h (..., N) after inputs with projections p (..., M) and W of `matrices`.

        It is used with `returns_output` only.
        """
        return h

    def step(self, p_t: Tensor, state: State, W: Matrices) -> Any:
        a, b = self.coefficients(p_t, W)
        h = a * state[0] + b
        return (self.read(h, p_t, W), (h,)) if self.returns_output else (h,)

    def features(self, h: Tensor) -> Tensor:
        """The two parts of every complex unit of h (..., N) side by side, (..., 2N); real ones unchanged."""
        return torch.view_as_real(h).flatten(-2) if h.is_complex() else h


def from_pairs(p: Tensor) -> Tensor:
    """Complex numbers (..., N) from real ones (..., 2N) in which both parts are neighbours; a view where one exists."""
    pairs = p.unflatten(-1, (-1, 2))
    odd = any(step % 2 for step in (pairs.storage_offset(), *pairs.stride()[:-1]))
    return torch.view_as_complex(pairs.clone(memory_format=torch.contiguous_format) if odd else pairs)


def alternating(re: Tensor, im: Tensor) -> Tensor:
    """Rows (2N, ...) that are those of `re` and `im` (N, ...) in turn."""
    return torch.stack([re, im], dim=1).flatten(0, 1)
