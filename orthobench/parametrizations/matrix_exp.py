"""Matrix exponential: a rotation from a skew-symmetric matrix.

    W = exp(A),   A^T = -A,   det W = 1

Three gradients for the free numbers above the diagonal of A, with G = dL/dW, X = G W^T and S = X - X^T:
`exact` is the derivative (expRNN's static trivialisation); `lie_algebra` takes S in its place (Plumbley; Chu's uRNN),
which is guaranteed to be a descent direction only while every eigenphase of A is below pi / 2; `geodesic` steps on the
group itself, W <- exp(-step) W (dynamic trivialisation with K = 1), where S is exact.
Lezcano-Casado & Martinez-Rubio (2019), "Cheap Orthogonal Constraints in Neural Networks"; Plumbley (2005), "Geometrical
methods for non-negative ICA".
"""

from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from orthobench.common.schema import NonNegativeFloat
from orthobench.parametrizations.initializers import Rng, tensor
from orthobench.parametrizations.moving_base import Settling, mended
from orthobench.parametrizations.skew import block_diagonal, sample_cayley_angles, skew, upper_indices
from orthobench.parametrizations.skew_exp import LieAlgebraGradient, exponential
from orthobench.parametrizations.traced import mapped, traced

SkewInit = Literal["zeros", "uniform", "henaff", "cayley"]


class MatrixExp(Settling):
    """Exponential of a skew matrix A (Lezcano-Casado & Martinez-Rubio 2019; Plumbley 2005).

    There are n(n-1)/2 free numbers above the diagonal of A. The exponential is computed in float64.

    Args:
        n: size of the matrix.
        rng: generator for the initial values.
        gradient: `exact` is the derivative. `lie_algebra` takes X - X^T in its place, X = dL/dW W^T. `geodesic` steps
            on the group: it keeps a base point in a buffer, W = exp(A) base, and moves it after every step, so that
            A = 0 and the optimizer's averages live in a moving frame.
        init: `zeros` gives W = I; `uniform` entries of A from U(-init_bound, init_bound), as the SGORNN authors' code;
            `henaff` 2x2 blocks with angles from U(-pi, pi); `cayley` blocks with angles -tan(t/2), t ~ U[0, pi/2], as
            expRNN's code, which keeps every eigenphase below one at any n.
        init_bound: used by `uniform` only.
    """

    in_onnx = False
    indices: Tensor
    base: Tensor
    in_double = ("base",)

    def __init__(
        self,
        n: int,
        rng: Rng,
        gradient: Literal["exact", "lie_algebra", "geodesic"] = "exact",
        init: SkewInit = "cayley",
        init_bound: NonNegativeFloat = 0.05,
    ) -> None:
        super().__init__(n)
        self.gradient = gradient
        self.theta = nn.Parameter(tensor(initial_angles(init, rng, n, init_bound)))
        self.register_buffer("indices", upper_indices(n), persistent=False)
        if gradient == "geodesic":
            self.register_buffer("base", torch.eye(n, dtype=torch.float64))
            self.beside = ("base",)  # type: ignore[misc]
            self._believe()
            self.after_step()

    def skew(self) -> Tensor:
        """A in float64, (n, n)."""
        return skew(self.theta.double(), self.indices, self.n)

    def forward(self) -> Tensor:
        geodesic = self.gradient == "geodesic"
        if geodesic:
            self._refuse_taken()
            self.check()
        A = self.skew()
        if traced(A) or (geodesic and mapped(A)):
            W = exponential(A) @ self.base if geodesic else exponential(A)
        elif self.gradient == "exact":
            W = exponential(A)
        elif self.gradient == "lie_algebra":
            W = LieAlgebraGradient.apply(A, exponential(A.detach()))
        elif self.is_settled():
            W = LieAlgebraGradient.apply(A, self.base)
        else:
            W = exponential(A) @ self.base
        return W.to(self.theta.dtype)

    def after_step(self) -> None:
        if self.gradient == "geodesic":
            super().after_step()

    def looks_settled(self) -> bool:
        return not self.theta.any()

    def settle(self) -> None:
        """Move the base point of `geodesic` to the current W."""
        self.base.copy_(exponential(self.skew()) @ self.base)
        self.theta.zero_()

    def mend(self) -> None:
        self.base = mended(self.base, "the base point of MatrixExp")

    @torch.no_grad()
    def max_eigenphase(self) -> float:
        """The largest |w| over A's eigenvalues i w, not wrapped at pi; over W's eigenvalues e^{i w} with `geodesic`."""
        if self.gradient == "geodesic":
            return float(torch.linalg.eigvals(self.forward().double()).angle().abs().max())
        return float(torch.linalg.eigvalsh(1j * self.skew()).abs().max())

    def gradient_cosine(self, G: Tensor) -> float:
        """Cosine between the Lie-algebra direction S and the exact gradient at G = dL/dW, (n, n); one at A = 0."""
        A, G = self.skew().detach().requires_grad_(), G.double()
        if self.gradient == "geodesic":
            G = G @ self.base.T
        with torch.enable_grad():
            W = exponential(A)
        X = G @ W.detach().T
        (exact,) = torch.autograd.grad(W, A, G)
        return float(F.cosine_similarity((X - X.T).flatten(), exact.flatten(), dim=0))


def initial_angles(init: SkewInit, rng: Rng, n: int, bound: float) -> np.ndarray:
    """The strict upper triangle of A at the start, flat (n(n-1)/2,); see `MatrixExp`."""
    if init == "uniform":
        return rng.uniform(-bound, bound, size=n * (n - 1) // 2)
    if init == "henaff":
        return block_diagonal(rng.uniform(-np.pi, np.pi, size=n // 2), n)
    if init == "cayley":
        return block_diagonal(-np.tan(sample_cayley_angles(rng, n) / 2), n)
    return np.zeros(n * (n - 1) // 2)
