"""Scaled Cayley transform: an orthogonal matrix from a skew-symmetric one.

    W = (I + A)^{-1} (I - A) D,   A^T = -A,   D = diag(1, ..., 1, -1, ..., -1) with rho entries -1

D is fixed; a suitable D makes every orthogonal matrix reachable with entries of A bounded by one (Kahan's theorem).
The system is solved in float64 and cast, as in the authors' code: in float32 W would be 3e-4 off for n = 512, |A| <= 1.
Helfrich, Willmott & Ye (2018), "Orthogonal Recurrent Neural Networks with Scaled Cayley Transform", sections 3 and 4.
"""

import numpy as np
import torch
from torch import Tensor, nn

from orthobench.common.schema import Count, resolve_count
from orthobench.parametrizations.base import Parametrization
from orthobench.parametrizations.initializers import Rng, tensor
from orthobench.parametrizations.skew import block_diagonal, sample_cayley_angles, skew, upper_indices


class ScaledCayley(Parametrization):
    """Scaled Cayley transform of a skew matrix A (Helfrich et al. 2018, section 3).

    There are n(n-1)/2 free numbers above the diagonal of A.

    Args:
        n: size of the matrix.
        rho: how many diagonal entries of D are -1, the last ones: a count, a share of n, or `max`.
        rng: generator for the initial angles t_j ~ U[0, pi/2]; block j of A then holds tan(t_j / 2) (section 4.2).
    """

    in_onnx = False
    indices: Tensor
    signs: Tensor

    def __init__(self, n: int, rng: Rng, rho: Count = 0.5) -> None:
        super().__init__(n)
        self.rho = resolve_count(rho, n, "rho")
        s = np.tan(sample_cayley_angles(rng, n) / 2)
        self.theta = nn.Parameter(tensor(block_diagonal(s, n)))
        signs = torch.ones(n)
        signs[n - self.rho :] = -1
        self.register_buffer("signs", signs, persistent=False)
        self.register_buffer("indices", upper_indices(n), persistent=False)

    def skew(self) -> Tensor:
        """A, (n, n)."""
        return skew(self.theta, self.indices, self.n)

    def forward(self) -> Tensor:
        A = self.skew().double()
        eye = torch.eye(self.n, dtype=A.dtype, device=A.device)
        W, _ = torch.linalg.solve_ex(eye + A, eye - A)  # I + A is never singular, and checking would wait for a GPU
        return (W * self.signs).to(self.theta.dtype)

    @staticmethod
    def limits(n: int) -> dict[str, int]:
        return {"rho": n}
