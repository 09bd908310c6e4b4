"""The restricted-capacity unitary matrix: a fixed product of diagonal, Fourier, reflection and permutation matrices.

    W = D_3 R_2 F^{-1} D_2 P R_1 F D_1

    D_j = diag(e^{i t}),   R = I - 2 v v^H / ||v||^2,   F the unitary discrete Fourier transform,   (P y)[i] = y[p[i]]

For n > 7 its 7n real numbers reach only a small part of the unitary matrices. A product with a vector costs O(n log n).
Arjovsky, Shah & Bengio (2016), "Unitary Evolution Recurrent Neural Networks", eq. 6.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from orthobench.parametrizations.factored import Factored, Factors
from orthobench.parametrizations.initializers import Rng, uniform

STEPWISE_FROM = 256  # measured on one core, batches of 20 to 128: equal near 200, twice as fast at 512, 6 times at 950


class UnitaryProduct(Factored):
    """A restricted-capacity unitary matrix, a product of simple ones (Arjovsky et al. 2016).

    There are 3n angles and two complex reflection vectors of 4n numbers. The permutation (n,) is a buffer.

    Args:
        n: size of the matrix.
        rng: generator for the angles, from U(-pi, pi); the reflections, Glorot uniform as a (2, 2n) matrix; and the
            permutation.
    """

    in_onnx = False
    permutation: Tensor

    def __init__(self, n: int, rng: Rng) -> None:
        super().__init__(n)
        self.theta = nn.Parameter(uniform(rng, (3, n), math.pi))
        self.v = nn.Parameter(uniform(rng, (2, 2, n), math.sqrt(6 / (2 + 2 * n))))
        self.register_buffer("permutation", torch.as_tensor(np.asarray(rng.permutation(n), dtype=np.int64)))
        self.stepwise = n >= STEPWISE_FROM

    def factors(self) -> Factors:
        """The diagonals (3, n), and the reflections' unit vectors (2, n)."""
        angles = self.theta.double()
        vectors = torch.complex(*self.v.double().unbind(1))
        norms = torch.linalg.vector_norm(vectors, dim=1, keepdim=True)
        return torch.polar(torch.ones_like(angles), angles), vectors / norms

    def multiply(self, h: Tensor, factors: Sequence[Tensor]) -> Tensor:
        (first, middle, last), (v, w) = factors
        h = _reflect(torch.fft.fft(h * first, norm="ortho"), v)
        h = torch.fft.ifft(h.index_select(-1, self.permutation) * middle, norm="ortho")
        return _reflect(h, w) * last

    def multiply_adds(self) -> int:
        """See `Parametrization`: n for a diagonal, 2n for a reflection, (n / 2) log2 n for a Fourier transform."""
        n = self.n
        return min(7 * n + math.ceil(n * math.log2(n)), n**2)

    @staticmethod
    def is_complex(given: dict[str, Any]) -> bool:
        return True


def _reflect(h: Tensor, v: Tensor) -> Tensor:
    """Every row of h reflected at the hyperplane whose normal is the unit vector v."""
    return h - torch.outer(h @ v.conj(), 2 * v)
