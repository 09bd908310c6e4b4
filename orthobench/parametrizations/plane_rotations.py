"""Sublayers of plane rotations with fixed random permutations between them.

    U = G_k P_k ... G_2 P_2 G_1 P_1,   (P_j y)[i] = y[p_j[i]],

where G_j rotates n / 2 pairs of coordinates, each by an angle of its own:

    (a, b) -> (a cos t - b sin t, b cos t + a sin t)

The paper's phi(Theta) = R_1 Q_1 ... R_k Q_k counts the sublayers from the other end. After m sublayers an input reaches
2^m outputs at most; det U is the product of the permutations' signs and never changes.
Taylor-Melanson, Ferreira & Matwin (2021), "SGORNN: Combining Scalar Gates and Orthogonal Constraints in Recurrent
Networks", eq. 2 and appendix A.3, A.4; half-split pairs are the authors' code, neighbours the paper's text.
"""

import math
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from orthobench.common.schema import Count, NonNegativeFloat, resolve_count
from orthobench.errors import ConfigError
from orthobench.parametrizations.base import Parametrization, even
from orthobench.parametrizations.initializers import Rng, uniform


class PlaneRotations(Parametrization):
    """Sublayers of plane rotations and fixed permutations, VPRNN (Taylor-Melanson et al. 2021, eq. 2).

    There are kn/2 angles. The permutations (k, n) are buffers.

    Args:
        n: size of the matrix, even.
        rng: generator for the permutations, one draw per sublayer, and then the angles.
        k: number of sublayers: a count up to 2 ceil(log2 n), a share of that, or `max`.
        pairing: which coordinates rotate together: i and i + n/2 (`half`), or 2i and 2i + 1 (`even_odd`). The reachable
            matrices are the same up to a fixed permutation.
        init_bound: the angles, in radians, start from U(-init_bound, init_bound).

    Raises:
        ConfigError: n is odd.
    """

    permutations: Tensor
    partners: Tensor

    def __init__(
        self,
        n: int,
        rng: Rng,
        k: Count = "max",
        pairing: Literal["half", "even_odd"] = "half",
        init_bound: NonNegativeFloat = 0.05,
    ) -> None:
        if reason := self.valid_size(n):
            raise ConfigError(f"hidden_size={n} does not suit plane rotations: {reason}")
        super().__init__(n)
        self.k = resolve_count(k, self.limits(n)["k"], "k")
        self.pairing = pairing
        permutations = np.array([rng.permutation(n) for _ in range(self.k)], dtype=np.int64)
        self.register_buffer("permutations", torch.as_tensor(permutations.reshape(self.k, n)))
        i = torch.arange(n)
        self.register_buffer("partners", (i + n // 2) % n if pairing == "half" else i ^ 1, persistent=False)
        self.theta = nn.Parameter(uniform(rng, (self.k, n // 2), init_bound))

    def forward(self) -> Tensor:
        theta = self.theta.double()
        cosines = self._to_pairs(theta.cos(), theta.cos())
        sines = self._to_pairs(-theta.sin(), theta.sin())
        U = torch.eye(self.n, dtype=theta.dtype, device=theta.device)
        partners = self.permutations[:, self.partners]
        for p, q, c, s in zip(self.permutations, partners, cosines, sines, strict=True):
            U = c * U.index_select(0, p) + s * U.index_select(0, q)
        return U.to(self.theta.dtype)

    def _to_pairs(self, first: Tensor, second: Tensor) -> Tensor:
        """Coefficients (k, n, 1) from those of the first and the second coordinate of every pair, (k, n/2) each."""
        if self.pairing == "half":
            return torch.cat([first, second], dim=1)[..., None]
        return torch.stack([first, second], dim=2).view(self.k, self.n, 1)

    def in_place(self) -> tuple[np.ndarray, np.ndarray]:
        """U as rotations of two places each, in which nothing moves, and one permutation after them.

        Returns:
            The two places that every angle rotates, (kn/2, 2), in the order in which they act; and for every coordinate
            of the product the place from which the permutation takes it, (n,).
        """
        order, pairs = np.arange(self.n), []
        for p in self.permutations.numpy():
            order = order[p]
            pairs.append(order.reshape(2, -1).T if self.pairing == "half" else order.reshape(-1, 2))
        return np.concatenate(pairs), order

    def multiply_adds(self) -> int:
        """See `Parametrization`: two for every coordinate and sublayer."""
        return min(2 * self.k * self.n, self.n**2)

    @staticmethod
    def limits(n: int) -> dict[str, int]:
        return {"k": 2 * math.ceil(math.log2(n))}

    @staticmethod
    def valid_size(n: int) -> str | None:
        return even(n, "it must be even, because the coordinates rotate in pairs")
