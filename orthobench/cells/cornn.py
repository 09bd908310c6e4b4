"""Coupled oscillatory recurrent network: damped, driven oscillators.

    z_t = z_{t-1} + dt (tanh(W y_{t-1} + V z_{t-1} + U x_t + b) - gamma y_{t-1} - epsilon z_{t-1})
    y_t = y_{t-1} + dt z_t

The state is (y, z), of which y is read. Rusch & Mishra (2021), "Coupled Oscillatory Recurrent Neural Network (coRNN):
An Accurate and (Gradient) Stable Architecture for Learning Long Time Dependencies", eq. 3, with explicit damping, as in
their code.
"""

from typing import Any, ClassVar

import torch
from torch import Tensor

from orthobench.cells.base import Cell, Matrices, State
from orthobench.common.schema import NonNegativeFloat, PositiveFloat


class CoRNN(Cell):
    """Coupled oscillators, coRNN (Rusch & Mishra 2021).

    The state is y (N,) and z (N,). W, which acts on y, has the configured parametrization; V, which acts on z, is free.

    Args:
        dt: the time step.
        gamma: the oscillators' stiffness.
        epsilon: their damping.
        **kwargs: see `Cell`.
    """

    gates: tuple[str, ...] = ("z",)
    matrix_names: tuple[str, ...] | None = ("y", "z")
    states: ClassVar[int] = 2

    def __init__(
        self, dt: PositiveFloat = 0.05, gamma: NonNegativeFloat = 1.0, epsilon: NonNegativeFloat = 5.0, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.dt, self.gamma, self.epsilon = dt, gamma, epsilon
        self._make_parameters(orthogonal=("y",), biased=self.gates, fan_in=self.input_size + 2 * self.hidden_size)

    def matrices(self) -> Matrices:
        """W and V side by side, (N, 2N)."""
        return (torch.cat(super().matrices(), dim=1),)

    def step(self, p_t: Tensor, state: State, W: Matrices) -> State:
        y, z = state
        force = torch.tanh(p_t + torch.cat(state, dim=1) @ W[0].T)
        z = z + self.dt * (force - self.gamma * y - self.epsilon * z)
        return y + self.dt * z, z

    @property
    def values_per_step(self) -> int:
        return 3 * self.hidden_size
