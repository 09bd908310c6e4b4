"""A causal convolution over time, channel by channel, with SiLU behind it, for all steps at once."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from orthobench.cells.base import State
from orthobench.cells.convolution import Convolve
from orthobench.scan.reference import projected


def convolve(x: Tensor, before: Tensor, kernel: Tensor, shift: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The outputs (B, T, M), and the last inputs, which are `before` for the steps that follow.

    Args:
        x: (B, T, M).
        before: the inputs before the first, (B, K - 1, M).
        kernel: (K, M), the factor of the current step last.
        shift: (M,), added before SiLU, or None.
    """
    whole, T = torch.cat([before, x], dim=1), x.shape[1]
    y = kernel[0] * whole[:, :T] if shift is None else torch.addcmul(shift, kernel[0], whole[:, :T])
    for k in range(1, len(kernel)):
        y = torch.addcmul(y, kernel[k], whole[:, k : k + T])
    return F.silu(y), whole[:, T:]


def run(cell: Any, x: Tensor, state: State, convolve: Convolve = convolve) -> tuple[Tensor, State]:
    """Run an `InputConvolution` over x from `state`; see `reference.run`."""
    p_TBI = projected(cell, x, ())
    before = state[0].expand(p_TBI.shape[1], *state[0].shape[1:])
    with torch.autocast(x.device.type, enabled=False):
        y, before = convolve(p_TBI.transpose(0, 1), before, cell.U)
    return y, (before,)
