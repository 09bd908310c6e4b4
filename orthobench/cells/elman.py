"""Elman recurrence with any recurrent matrix.

    h_t = act(U x_t + W h_{t-1} + b)

W comes from a parametrization; scoRNN is ScaledCayley with modReLU, whose bias b acts inside: sign(z) max(|z| + b, 0).
"""

from typing import Any

from torch import Tensor

from orthobench.cells.activations import Activation, activate
from orthobench.cells.base import Cell, Matrices, State
from orthobench.schema import NonNegativeFloat


class Elman(Cell):
    """One matrix, one activation.

    Args:
        activation: modrelu, relu, leaky_relu, abs or tanh.
        negative_slope: leaky ReLU's factor on negative values.
        **kwargs: see `Cell`.
    """

    def __init__(self, activation: Activation = "tanh", negative_slope: NonNegativeFloat = 0.1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.activation, self.negative_slope = activation, negative_slope
        self._make_parameters(orthogonal=self.gates, biased=self.gates)

    def _joint_bias(self) -> Tensor | None:
        return None if self.activation == "modrelu" else self.b["h"]

    def step(self, p_t: Tensor, state: State, W: Matrices) -> State:
        z = p_t + state[0] @ W[0].T
        return (activate(self.activation, z, self.b["h"], self.negative_slope),)

    def torch_kernel(self) -> str | None:
        return {"tanh": "rnn_tanh", "relu": "rnn_relu"}.get(self.activation)
