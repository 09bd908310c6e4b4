"""Long expressive memory: two states with learnt time steps of their own.

    a_t = dt sigmoid(U_a x_t + W_a y_{t-1} + b_a),   b_t = dt sigmoid(U_b x_t + W_b y_{t-1} + b_b)
    z_t = (1 - b_t) * z_{t-1} + b_t * tanh(U_z x_t + W_z y_{t-1} + b_z)
    y_t = (1 - a_t) * y_{t-1} + a_t * tanh(U_y x_t + W_y z_t + b_y)

The state is (y, z), of which y is read. Rusch, Mishra, Erichson & Mahoney (2022), "Long Expressive Memory for Sequence
Modeling", eq. 3.
"""

from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from orthobench.cells.base import Cell, Matrices, State
from orthobench.common.schema import PositiveFloat

LEMGate = Literal["a", "b", "z", "y"]


class LEM(Cell):
    """Long expressive memory (Rusch et al. 2022).

    The state is y (N,) and z (N,). The gates are the two time steps and the two candidates, in this order.

    Args:
        dt: the largest time step.
        orthogonal: the gates whose recurrent matrix comes from the configured parametrization; the others are free.
        **kwargs: see `Cell`.
    """

    gates: tuple[str, ...] = ("a", "b", "z", "y")
    opened: ClassVar[tuple[str, ...]] = ("b", "a")
    states: ClassVar[int] = 2

    def __init__(
        self,
        dt: PositiveFloat = 1.0,
        orthogonal: list[LEMGate] = ["y"],  # noqa: B006  (read, never changed)
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.dt = dt
        self._make_parameters(orthogonal=tuple(orthogonal), biased=self.gates)

    def matrices(self) -> Matrices:
        """The matrices that act on y stacked as (3N, N), and W_y, which acts on z."""
        *on_y, on_z = super().matrices()
        return torch.cat(on_y), on_z

    def step(self, p_t: Tensor, state: State, W: Matrices) -> State:
        (y, z), N = state, self.hidden_size
        a, b, c = (p_t[:, : 3 * N] + y @ W[0].T).chunk(3, dim=-1)
        z = torch.lerp(z, torch.tanh(c), self.dt * torch.sigmoid(b))
        return torch.lerp(y, torch.tanh(p_t[:, 3 * N :] + z @ W[1].T), self.dt * torch.sigmoid(a)), z

    @property
    def values_per_step(self) -> int:
        return 6 * self.hidden_size
