"""Linear recurrent unit: a diagonal of complex numbers inside the unit circle.

    h_t = lambda * h_{t-1} + exp(g) * (B x_t),   lambda = exp(-exp(nu) + i exp(theta)),   |lambda| < 1 for every nu
    y_t = Re(C h_t) + d * x_t

h, B and C are complex, x and y real and of one width. Orvieto, Smith, Gu, Fernando, Gulcehre, Pascanu & De (2023),
"Resurrecting Recurrent Neural Networks for Long Sequences", section 3 and appendix A. A complex number is kept as two
real ones, and C as its conjugate, so that Re(C h) is a plain sum over both parts.
"""

import math
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from orthobench.cells.base import Matrices, projection
from orthobench.cells.diagonal_linear import DiagonalLinear, alternating, from_pairs
from orthobench.cells.initial import MakeRecurrent
from orthobench.common.schema import NonNegativeFloat, Positive, PositiveFloat
from orthobench.errors import ConfigError
from orthobench.parametrizations.initializers import Rng, normal, tensor


class LRU(DiagonalLinear):
    """Linear recurrent unit: a complex diagonal inside the unit circle (Orvieto et al. 2023).

    The state is h (N,), complex. |lambda|^2 starts uniform between r_min^2 and r_max^2, its phase between 0 and
    max_phase.

    Args:
        input_size: I, the width of an input.
        hidden_size: N, the number of complex units.
        rng: generator for the initial values.
        make_recurrent: unused, as there is no recurrent matrix.
        r_min: smallest modulus at the start.
        r_max: largest modulus at the start, at most 1.
        max_phase: largest phase at the start, in radians.
        features: what a readout and the next layer see: `output` for y_t, of the input's width, or `both` for
            both parts of h, 2N numbers, without C and d.
        slow: factor on the learning rate of nu, theta, g and B, which have no weight decay; 0.25 to 0.5 in the paper.
        input_init: scheme of B as a real (2N, I) matrix, `lru` for the paper's N(0, 1 / 2I), or a bound.

    Raises:
        ConfigError: r_min is not below r_max, or r_max is above 1.
    """

    gates: tuple[str, ...] = ("re", "im")
    complex_state: ClassVar[bool] = True

    def __init__(
        self,
        input_size: int,
        hidden_size: Positive,
        rng: Rng,
        make_recurrent: MakeRecurrent,
        r_min: NonNegativeFloat = 0.0,
        r_max: PositiveFloat = 1.0,
        max_phase: PositiveFloat = 6.283185307179586,
        features: Literal["output", "both"] = "output",
        slow: PositiveFloat = 0.25,
        input_init: str | float = "lru",
    ) -> None:
        if input_init == "lru":
            input_init = f"normal {math.sqrt(1 / (2 * input_size)):.17g}"
        super().__init__(input_size, hidden_size, rng, make_recurrent, input_init)
        if not r_min < r_max <= 1:
            raise ConfigError(f"model.r_min={r_min} and model.r_max={r_max} do not fit: r_min < r_max <= 1 is needed.")
        I, N = input_size, hidden_size
        self._make_parameters(orthogonal=(), biased=())
        squared = rng.uniform(size=N) * (r_max**2 - r_min**2) + r_min**2
        self.nu = nn.Parameter(tensor(np.log(-0.5 * np.log(squared))))
        self.theta = nn.Parameter(tensor(np.log(max_phase * rng.uniform(size=N))))
        self.g = nn.Parameter(tensor(0.5 * np.log1p(-squared)))
        self.slow, self.returns_output = slow, features == "output"
        self.feature_size = I if self.returns_output else 2 * N
        if self.returns_output:
            self.C = nn.Parameter(normal(rng, (I, 2 * N), math.sqrt(1 / N)))
            self.d = nn.Parameter(normal(rng, (I,), 1.0))

    def matrices(self) -> Matrices:
        """The two parts of lambda, (N,) each."""
        modulus, phase = (-self.nu.exp()).exp(), self.theta.exp()
        return modulus * phase.cos(), modulus * phase.sin()

    def project(self, x: Tensor) -> Tensor:
        """exp(g) B x, the two parts of every unit side by side, then d * x where it is shown: (T, B, 2N + I)."""
        rows = self.g.exp()[:, None] * self.U.unflatten(0, (2, -1))
        U = alternating(*rows.unbind(0))
        return projection(x, torch.cat([U, torch.diag(self.d)]) if self.returns_output else U, None)

    def coefficients(self, p: Tensor, W: Matrices) -> tuple[Tensor, Tensor]:
        return torch.complex(*W), from_pairs(p[..., : 2 * self.hidden_size])

    def read(self, h: Tensor, p: Tensor, W: Matrices) -> Tensor:
        """The output y (..., I)."""
        return F.linear(self.features(h), self.C) + p[..., 2 * self.hidden_size :]

    def learning_rate_scales(self) -> dict[str, float]:
        return dict.fromkeys(("nu", "theta", "g", "U"), self.slow)

    @property
    def values_per_step(self) -> int:
        return 4 * self.hidden_size
