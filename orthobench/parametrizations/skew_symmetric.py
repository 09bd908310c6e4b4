"""Matrices between skew and symmetric, shifted, as in the Lipschitz recurrent network.

    A = beta (M - M^T) + (1 - beta) (M + M^T) - gamma I

M is free. Here beta multiplies the skew part, as in the authors' code: A is skew for beta = 1, up to the shift, and
symmetric for beta = 0. Erichson, Azencot, Queiruga, Hodgkinson & Mahoney (2021), "Lipschitz Recurrent Neural Networks",
eq. 4.
"""

from typing import Annotated, ClassVar

import torch
from torch import Tensor, nn

from orthobench.common.schema import NonNegativeFloat, Range
from orthobench.parametrizations.base import Parametrization
from orthobench.parametrizations.initializers import Rng, normal


class SkewSymmetric(Parametrization):
    """A matrix between skew and symmetric, shifted (Erichson et al. 2021).

    There are n^2 free numbers M, from N(0, (sigma / n)^2). No manifold: between the two ends any matrix can be reached.

    Args:
        n: size of the matrix.
        rng: generator for the initial values.
        beta: share of the skew part, 0 to 1.
        gamma: the shift, which damps.
        sigma: n times the standard deviation of M at the start.
    """

    constrained: ClassVar[bool] = False

    def __init__(
        self,
        n: int,
        rng: Rng,
        beta: Annotated[float, Range(0, 1)] = 0.75,
        gamma: NonNegativeFloat = 0.001,
        sigma: NonNegativeFloat = 1.0,
    ) -> None:
        super().__init__(n)
        self.beta, self.gamma = beta, gamma
        self.M = nn.Parameter(normal(rng, (n, n), sigma / n))

    def forward(self) -> Tensor:
        shift = self.gamma * torch.eye(self.n, dtype=self.M.dtype, device=self.M.device)
        return self.M + (1 - 2 * self.beta) * self.M.T - shift

    def contains(self, W: Tensor, tolerance: float) -> bool:
        return True
