"""The vectors of a product of Householder reflectors: their storage, initial values and normalisation.

Row i = 0, 1, ..., m-1 acts on the trailing n - i coordinates, so it has n - i free numbers and together they have
nm - m(m-1)/2. For m = n the last row is one number whose reflector is a change of sign: its gradient is zero.
Zhang, Lei & Dhillon (2018), section 3; Mhammedi, Hellicar, Rahman & Bailey (2017), "Efficient Orthogonal
Parametrisation of Recurrent Neural Networks using Householder Reflections".
"""

import math
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from orthobench.parametrizations.hooks import taken
from orthobench.parametrizations.initializers import Rng, tensor

ReflectorInit = Literal["glorot", "normal"]


class Reflectors(nn.Module):
    """m vectors in R^n, stored in one flat parameter, row by row from the diagonal on.

    Args:
        n: size of the space.
        m: number of vectors, at most n.
        rng: generator for the initial values.
        reflector_init: `glorot` draws U(-b, b), b = sqrt(6 / (m + n)), and leaves the norms as they fall
            (Spectral-RNN's code); `normal` draws N(0, 0.01^2) and normalises (oRNN's code).
    """

    indices: Tensor

    def __init__(self, n: int, m: int, rng: Rng, reflector_init: ReflectorInit = "glorot") -> None:
        super().__init__()
        self.n, self.m = n, m
        if reflector_init == "glorot":
            bound = math.sqrt(6 / (m + n))
            rows = rng.uniform(-bound, bound, size=(m, n))
        else:
            rows = np.triu(rng.normal(0, 0.01, size=(m, n)))
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        self.theta = nn.Parameter(tensor(rows[np.triu_indices(m, 0, n)]))
        row, column = torch.triu_indices(m, n)
        self.register_buffer("indices", row * n + column, persistent=False)

    def forward(self) -> Tensor:
        """A = [a_1, ..., a_m] in float64, (n, m), a_1 being the vector of full length."""
        theta = self.theta.double()
        if self.m == self.n:
            theta = torch.cat([theta[:-1], theta[-1:].sign()])
        return self._rows(theta).T

    @torch.no_grad()
    def renormalize(self) -> None:
        """Divide every vector by its norm, except those that are zero or have norm one up to rounding.

        A theta that torch.nn.utils computes is left alone: the norms do not matter.
        """
        if taken(self, "theta"):
            return
        rows = self._rows(self.theta.double())
        norms = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
        done = (norms == 0) | ((norms - 1).abs() <= 8 * torch.finfo(self.theta.dtype).eps)
        self.theta.copy_((rows / torch.where(done, 1, norms)).flatten()[self.indices])

    def _rows(self, theta: Tensor) -> Tensor:
        return theta.new_zeros(self.m * self.n).index_copy(0, self.indices, theta).view(self.m, self.n)
