"""Skew-symmetric matrices, shifted: W = A - gamma I, A^T = -A, whose eigenvalues are -gamma +- i w.

Chang, Chen, Haber & Chi (2019), "AntisymmetricRNN: A Dynamical System View on Recurrent Neural Networks", section 3.
"""

from typing import ClassVar

import torch
from torch import Tensor, nn

from orthobench.common.schema import NonNegativeFloat
from orthobench.parametrizations.base import Parametrization
from orthobench.parametrizations.initializers import Rng, normal
from orthobench.parametrizations.skew import skew, upper_indices


class Antisymmetric(Parametrization):
    """A skew matrix, shifted: W = A - gamma I (Chang et al. 2019). It is not orthogonal.

    There are n(n-1)/2 free numbers above the diagonal of A, from N(0, sigma^2 / n).

    Args:
        n: size of the matrix.
        rng: generator for the initial values.
        gamma: the shift, which damps.
        sigma: sqrt(n) times the standard deviation of the entries at the start.
    """

    constrained: ClassVar[bool] = False
    indices: Tensor

    def __init__(self, n: int, rng: Rng, gamma: NonNegativeFloat = 0.01, sigma: NonNegativeFloat = 1.0) -> None:
        super().__init__(n)
        self.gamma = gamma
        self.theta = nn.Parameter(normal(rng, (n * (n - 1) // 2,), sigma / n**0.5))
        self.register_buffer("indices", upper_indices(n), persistent=False)

    def forward(self) -> Tensor:
        shift = self.gamma * torch.eye(self.n, dtype=self.theta.dtype, device=self.theta.device)
        return skew(self.theta, self.indices, self.n) - shift

    def contains(self, W: Tensor, tolerance: float) -> bool:
        """Return True if W + gamma I is skew: ||W + W^T + 2 gamma I||_F <= tolerance."""
        far = (W + W.T).detach()
        far.diagonal().add_(2 * self.gamma)
        return float(torch.linalg.matrix_norm(far)) <= tolerance
