"""Real Schur form: a matrix by its rotations, their gains and the non-normal part that a spectrum does not show.

    W = P (D + U) P^T,   P orthogonal,   D block-diagonal with blocks g_i R(t_i),   U strictly above the blocks

R(t) turns a plane by t, so that W has the eigenvalues g_i exp(+- i t_i); with g = 1 and U = 0 it is orthogonal. Kerg,
Goyette, Touzel, Gidel, Vorontsov, Bengio & Lajoie (2019), "Non-normal Recurrent Neural Network (nnRNN): learning long
time dependencies while improving expressivity with transient dynamics", section 2. P is the exponential of a skew
matrix, as in expRNN. Training may add a penalty on gains away from one to the loss, delta sum_i (g_i - 1)^2. In the
authors' code the rate of the orthogonal part is that of P alone, and U has a weight decay of its own.
"""

from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from orthobench.common.schema import NonNegativeFloat
from orthobench.errors import ConfigError
from orthobench.parametrizations.base import Parametrization, even
from orthobench.parametrizations.initializers import Rng, tensor, uniform
from orthobench.parametrizations.matrix_exp import SkewInit, initial_angles
from orthobench.parametrizations.skew import skew, upper_indices
from orthobench.parametrizations.skew_exp import exponential


class Schur(Parametrization):
    """Rotations and gains in an orthogonal basis, and a non-normal part, nnRNN (Kerg et al. 2019).

    There are n(n-1)/2 numbers for P, n for gains and angles and n(n-2)/2 above the blocks; n is even.
    No manifold: gains and the upper part are free.

    Args:
        n: size of the matrix.
        rng: generator for the initial values.
        init: how P starts, as `init` of `matrix_exp`; the angles of D start as those of `henaff`, from U(-pi, pi).
        init_bound: used by `init=uniform` only.
        upper_bound: the bound b of U(-b, b) that the part above the blocks starts from.
        gain_penalty: weight delta of the penalty on gains that differ from one; 0 for none.
        recurrent_group: parameters in the optimizer's recurrent group: those of `P`, or `all`.
        upper_decay: weight decay of the part above the blocks, where the recurrent group is P.

    Raises:
        ConfigError: a decay beside `recurrent_group=all`.
    """

    tolerance: float = float("inf")
    in_onnx = False
    P_indices: Tensor
    upper: Tensor

    def __init__(
        self,
        n: int,
        rng: Rng,
        init: SkewInit = "cayley",
        init_bound: NonNegativeFloat = 0.05,
        upper_bound: NonNegativeFloat = 0.0,
        gain_penalty: NonNegativeFloat = 0.0,
        recurrent_group: Literal["P", "all"] = "all",
        upper_decay: NonNegativeFloat = 0.0,
    ) -> None:
        super().__init__(n)
        if upper_decay and recurrent_group == "all":
            raise ConfigError(
                f"model.upper_decay={upper_decay:g} does not apply with model.recurrent_group=all, whose parameters "
                "have no weight decay: use model.recurrent_group=P."
            )
        self.gain_penalty, self.recurrent_group, self.upper_decay = gain_penalty, recurrent_group, upper_decay
        self.theta = nn.Parameter(tensor(initial_angles(init, rng, n, init_bound)))
        self.angles = nn.Parameter(uniform(rng, (n // 2,), np.pi))
        self.gains = nn.Parameter(torch.ones(n // 2))
        self.T = nn.Parameter(uniform(rng, (n * (n - 2) // 2,), upper_bound))
        self.register_buffer("P_indices", upper_indices(n), persistent=False)
        above = np.triu(np.ones((n, n), dtype=bool), 1)
        above[np.arange(0, n, 2), np.arange(1, n, 2)] = False
        self.register_buffer("upper", torch.from_numpy(np.flatnonzero(above)), persistent=False)

    def forward(self) -> Tensor:
        P = exponential(skew(self.theta.double(), self.P_indices, self.n)).to(self.theta.dtype)
        return P @ self.middle() @ P.T

    def middle(self) -> Tensor:
        """D + U, (n, n)."""
        upper = self.T.new_zeros(self.n**2).index_copy(0, self.upper, self.T).view(self.n, self.n)
        cos, sin = self.gains * self.angles.cos(), self.gains * self.angles.sin()
        blocks = torch.stack([cos, -sin, sin, cos], dim=-1).view(-1, 2, 2)
        return upper + torch.block_diag(*blocks)

    def penalty(self) -> Tensor | None:
        return self.gain_penalty * (self.gains - 1).square().sum() if self.gain_penalty else None

    def at_free_rate(self) -> dict[str, float | None]:
        """See `Parametrization`: with `recurrent_group=P` angles, gains and the part above the blocks."""
        return {"angles": None, "gains": None, "T": self.upper_decay} if self.recurrent_group == "P" else {}

    def contains(self, W: Tensor, tolerance: float) -> bool:
        return True

    @staticmethod
    def valid_size(n: int) -> str | None:
        return even(n, "it must be even, because its blocks are pairs of units")
