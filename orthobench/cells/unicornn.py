"""Undamped independent oscillators: a symplectic step in time, unit by unit.

    z_t = z_{t-1} - dt s (tanh(w y_{t-1} + U x_t + b) + alpha y_{t-1}),   s = sigmoid(c)
    y_t = y_{t-1} + dt s z_t

w, c and b are vectors, and all products but U x are elementwise; the state is (y, z), of which y is read. Rusch &
Mishra (2021), "UnICORNN: A recurrent model for learning very long time dependencies", eq. 4. Their advice for new data:
dt near 1 / T, alpha near 1, two layers or more.
"""

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from orthobench.cells.base import Cell, Matrices, State
from orthobench.common.schema import NonNegativeFloat, PositiveFloat
from orthobench.parametrizations.initializers import tensor


class UnICORNN(Cell):
    """Undamped independent oscillators (Rusch & Mishra 2021).

    The state is y (N,) and z (N,). w starts uniform from 0 to 1, and c from -0.1 to 0.1.

    Args:
        dt: the largest time step.
        alpha: the oscillators' stiffness.
        **kwargs: see `Cell`.
    """

    gates: tuple[str, ...] = ("z",)
    matrix_names: tuple[str, ...] | None = ()
    states: ClassVar[int] = 2

    def __init__(self, dt: PositiveFloat = 0.1, alpha: NonNegativeFloat = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.dt, self.alpha = dt, alpha
        self._make_parameters(orthogonal=(), biased=self.gates)
        rng, N = self.initial.rng, self.hidden_size
        self.w = nn.Parameter(tensor(rng.uniform(0, 1, size=N)))
        self.c = nn.Parameter(tensor(rng.uniform(-0.1, 0.1, size=N)))

    def matrices(self) -> Matrices:
        """The vectors w and dt s, (N,) each."""
        return self.w, self.dt * torch.sigmoid(self.c)

    def step(self, p_t: Tensor, state: State, W: Matrices) -> State:
        (y, z), (w, pace) = state, W
        z = z - pace * (torch.tanh(w * y + p_t) + self.alpha * y)
        return y + pace * z, z

    @property
    def values_per_step(self) -> int:
        return 3 * self.hidden_size
