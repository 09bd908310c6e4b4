"""A short causal convolution over time, channel by channel, with SiLU behind it: within a cell, or in front of one."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from orthobench.cells.base import Cell, Matrices, State
from orthobench.common.schema import Positive
from orthobench.parametrizations.free import Free
from orthobench.parametrizations.initializers import Rng, uniform

Convolve = Callable[..., tuple[Tensor, Tensor]]


class InputConvolution(Cell):
    """y_t = SiLU(sum over k of U_k * x_(t - K + 1 + k)), a layer in front of a cell, which reads y in place of x.

    So the cell meets the last K inputs in one step, as DeltaNet and mLSTM do by the convolution of theirs. There is no
    recurrence: the state is what the convolution sees of the steps before, (K - 1, I).

    Args:
        input_size: I, the width of an input.
        steps: K, the steps that are seen, the current one included.
        rng: generator for the initial values, U(-b, b) with b = 1 / sqrt(K).
    """

    gates: tuple[str, ...] = ("x",)
    matrix_names: tuple[str, ...] | None = ()
    returns_output: bool = True

    def __init__(self, input_size: int, steps: Positive, rng: Rng) -> None:
        super().__init__(input_size, input_size, rng, Free)
        self.steps = steps
        self.U = nn.Parameter(uniform(rng, (steps, input_size), steps**-0.5))
        self.b, self.b_hidden = nn.ParameterDict(), nn.ParameterDict()
        self.recurrent, self.clips = nn.ModuleDict(), nn.ModuleDict()

    def state_shapes(self) -> tuple[tuple[int, ...], ...]:
        return ((self.steps - 1, self.input_size),)

    def project(self, x: Tensor) -> Tensor:
        """The inputs themselves, (T, B, I), tokens as one-hot vectors."""
        return vectors(x, self.U)

    def step(self, p_t: Tensor, state: State, W: Matrices) -> tuple[Tensor, State]:
        y, before = convolved(p_t, state[0], self.U)
        return y, (before,)


def vectors(x: Tensor, U: Tensor) -> Tensor:
    """Inputs as `Cell.project` takes them, (T, B, I), tokens as one-hot vectors in the type of U (M, I)."""
    if x.is_floating_point():
        return x.transpose(0, 1)
    return (x.T[..., None] == torch.arange(U.shape[1], device=x.device)).to(U.dtype)


def convolved(x: Tensor, before: Tensor, kernel: Tensor, shift: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Compute one step of a causal convolution, channel by channel, with SiLU.

    Args:
        x: the input, (B, C).
        before: those of the steps before it that the kernel sees, (B, K - 1, C).
        kernel: (K, C).
        shift: (C,), added before SiLU, or None.

    Returns:
        (B, C), and what the next step sees, (B, K - 1, C).
    """
    window = torch.cat([before, x[:, None]], dim=1)
    seen = (window * kernel).sum(1)
    return F.silu(seen if shift is None else seen + shift), window[:, 1:]
