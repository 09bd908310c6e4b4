"""Elman recurrence with any recurrent matrix.

    h_t = act(U x_t + W h_{t-1} + b)

W comes from a parametrization; scoRNN is ScaledCayley with modReLU, whose bias b acts inside: sign(z) max(|z| + b, 0).
"""

from typing import Any

import torch
from torch import Tensor

from orthobench.cells.activations import Activation, activate, slopes
from orthobench.cells.base import Cell, Matrices, State
from orthobench.common.schema import NonNegativeFloat


class Elman(Cell):
    """Elman cell: one matrix, one activation (Elman 1990); scoRNN has modReLU (Helfrich et al. 2018, section 4.1).

    The state is h (N,).

    Args:
        activation: modrelu, relu, leaky_relu, abs or tanh.
        negative_slope: leaky ReLU's factor on negative values.
        **kwargs: see `Cell`.
    """

    def __init__(self, activation: Activation = "tanh", negative_slope: NonNegativeFloat = 0.1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.activation: Activation = activation
        self.negative_slope = negative_slope
        inside = self.gates if activation == "modrelu" else ()
        self._make_parameters(orthogonal=self.gates, biased=self.gates, inside=inside)

    def step(self, p_t: Tensor, state: State, W: Matrices) -> State:
        z = p_t + state[0] @ W[0].T
        return (activate(self.activation, z, self.b["h"], self.negative_slope),)

    def torch_kernel(self) -> str | None:
        return {"tanh": "rnn_tanh", "relu": "rnn_relu"}.get(self.activation)

    def step_gain(self, W: Matrices) -> tuple[float, float] | None:
        """(min |act'| sigma_min(W), max |act'| sigma_max(W)): Chu, theorem 1."""
        (low, high), sigma = slopes(self.activation, self.negative_slope), torch.linalg.svdvals(W[0].detach())
        return low * float(sigma[-1]), high * float(sigma[0])
