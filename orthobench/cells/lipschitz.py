"""Lipschitz recurrent network: one Euler step of a linear and a nonlinear flow.

    h_t = h_{t-1} + eps (A h_{t-1} + tanh(W h_{t-1} + U x_t + b))

A and W are sums of a skew, a symmetric and a scalar part (parametrizations/skew_symmetric.py), which bounds the growth.
Erichson, Azencot, Queiruga, Hodgkinson & Mahoney (2021), "Lipschitz Recurrent Neural Networks", eq. 3 and 4. Without A,
and with a W that is skew up to a shift, it is the antisymmetric network of Chang, Chen, Haber & Chi (2019),
"AntisymmetricRNN: A Dynamical System View on Recurrent Neural Networks", eq. 9.
"""

from typing import Any

import torch
from torch import Tensor

from orthobench.cells.base import Cell, Matrices, State
from orthobench.common.schema import PositiveFloat


class Lipschitz(Cell):
    """Lipschitz recurrent network (Erichson et al. 2021); without A the antisymmetric one (Chang et al. 2019).

    The state is h (N,). Both matrices have the configured parametrization.

    Args:
        eps: the time step.
        linear: whether there is a linear flow A h.
        **kwargs: see `Cell`.
    """

    gates: tuple[str, ...] = ("h",)
    matrix_names: tuple[str, ...] | None = ("A", "W")

    def __init__(self, eps: PositiveFloat = 0.03, linear: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.eps, self.linear = eps, linear
        if not linear:
            self.matrix_names = ("W",)
        self._make_parameters(orthogonal=self._matrix_names(), biased=self.gates)

    def matrices(self) -> Matrices:
        """A and W stacked as (2N, N), or W alone."""
        return (torch.cat(super().matrices()),)

    def step(self, p_t: Tensor, state: State, W: Matrices) -> State:
        (h,), N = state, self.hidden_size
        pushed = h @ W[0].T
        flow = torch.tanh(pushed[:, -N:] + p_t)
        return (h + self.eps * (pushed[:, :N] + flow if self.linear else flow),)

    @property
    def values_per_step(self) -> int:
        return 2 * self.hidden_size
