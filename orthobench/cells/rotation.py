"""Complex units that an input turns and damps: the unitary RNN's descendant among diagonal linear recurrences.

    h_t = exp(-a_t + i phi_t) * h_{t-1} + B x_t
    a_t = softplus(U_a x_t + b_a) >= 0,   phi_t = U_phi x_t + b_phi

h and B are complex, and both parts of h are read. With a = 0 every step is unitary; parity is phi = pi x. This is the
smallest form of an idea of two larger models: the complex state of Lahoti et al. (2026), "Mamba-3: Improved Sequence
Modeling using State Space Principles", and the unitary one of Karuvally, Nowak, Keller, Alonso, Sejnowski & Siegelmann
(2025), "Bridging Expressivity and Scalability with Adaptive Unitary SSMs".
"""

import math
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from orthobench.cells.base import Matrices, projection
from orthobench.cells.diagonal_linear import DiagonalLinear, alternating, from_pairs
from orthobench.cells.initial import MakeRecurrent
from orthobench.common.schema import Positive, PositiveFloat
from orthobench.errors import ConfigError
from orthobench.parametrizations.initializers import Rng, tensor, uniform


class Rotation(DiagonalLinear):
    """Complex units that the input turns and damps (ours, after Lahoti et al. 2026 and Karuvally et al. 2025).

    The state is h (N,), complex. The gates are the real and the imaginary part of B, the phase and the damping.

    Args:
        input_size: I, the width of an input.
        hidden_size: N, the number of complex units.
        rng: generator for the initial values.
        make_recurrent: unused, as there is no recurrent matrix.
        r_min: smallest modulus exp(-a) that a unit starts with, where x = 0.
        r_max: largest modulus at the start, below 1; both are unused with `unitary`.
        unitary: whether a = 0, without U_a and b_a.
        input_init: scheme of all input weights, or a bound.

    Raises:
        ConfigError: r_min is not below r_max, or r_max is not below 1.
    """

    complex_state: ClassVar[bool] = True
    gates: tuple[str, ...] = ("re", "im", "phi", "a")

    def __init__(
        self,
        input_size: int,
        hidden_size: Positive,
        rng: Rng,
        make_recurrent: MakeRecurrent,
        r_min: PositiveFloat = 0.9,
        r_max: PositiveFloat = 0.999,
        unitary: bool = False,
        input_init: str | float = "linear",
    ) -> None:
        super().__init__(input_size, hidden_size, rng, make_recurrent, input_init)
        if not r_min < r_max < 1:
            raise ConfigError(f"model.r_min={r_min} and model.r_max={r_max} do not fit: r_min < r_max < 1 is needed.")
        if unitary:
            self.gates = self.gates[:3]
        self.feature_size = 2 * hidden_size
        self._make_parameters(orthogonal=(), biased=self.gates[2:])
        self.b["phi"].data.copy_(uniform(rng, (hidden_size,), math.pi))
        if not unitary:
            damping = -np.log(rng.uniform(r_min, r_max, size=hidden_size))
            self.b["a"].data.copy_(tensor(np.log(np.expm1(damping))))

    def project(self, x: Tensor) -> Tensor:
        """B x, the two parts of every unit side by side, then what a and phi are computed from: (T, B, 2N to 4N)."""
        re, im, *others = self.U.chunk(len(self.gates))
        biases = [self.U.new_zeros(2 * self.hidden_size), *(self.b[gate] for gate in self.gates[2:])]
        return projection(x, torch.cat([alternating(re, im), *others]), torch.cat(biases))

    def coefficients(self, p: Tensor, W: Matrices) -> tuple[Tensor, Tensor]:
        N = self.hidden_size
        b, phi, *a = p.split([2 * N, *(N for _ in self.gates[2:])], dim=-1)
        factor = torch.stack([phi.cos(), phi.sin()], dim=-1)
        if a:
            factor = factor * torch.exp(-F.softplus(a[0]))[..., None]
        return torch.view_as_complex(factor), from_pairs(b)

    @property
    def values_per_step(self) -> int:
        return 6 * self.hidden_size
