"""RWKV-7's time mixing: a matrix with a decay and a rate of learning for every key, set by the input.

    S <- diag(w_t) S - (a_t * c_t) (S^T c_t)^T + k~_t v_t^T,   o_t = S^T r_t
    y_t = O (g_t * (norm(o_t) + (sum over keys of r_t * k~_t * R) v_t))

in every head, with S (d, d). Every map reads x + (x' - x) * mu, where x' is the input before and mu a vector of it.
r, k and v are of matrices, and of two thin matrices each ln w = -exp(-1/2) sigmoid(w_0 + W_2 tanh(W_1 x)), which leaves
w between 0.545 and 1, a = sigmoid(a_0 + A_2 A_1 x) and g = G_2 sigmoid(G_1 x). c is k * K at length 1, and k~ is
k * (1 + (a - 1) * L). The norm gives a head zero mean and unit variance. What is removed is read from the undecayed S.
The eigenvalues of a step are real and between -0.455 and 1. Their lower end is -1 with a = (1 + w) sigmoid(...), which
is in (0, 2) where w is one, as the paper's theorem on state tracking asks for, and lets no eigenvalue leave [-1, 1].
Peng, Zhang, Goldstein et al. (2025), "RWKV-7 'Goose' with Expressive Dynamic State Evolution", section 4; the starts
are those of the authors' code for a first layer, but for O, which there starts at zero.
"""

import math
from collections.abc import Callable
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from orthobench.cells.convolution import Convolve, vectors
from orthobench.cells.initial import MakeRecurrent
from orthobench.cells.outer import Outer, Writes
from orthobench.common.schema import Positive
from orthobench.parametrizations.initializers import Rng, orthogonal, tensor, uniform

MIXED = ("r", "k", "v", "w", "a", "g")
POWERS = (0.2, 0.7, 0.7, 0.9, 0.9, 0.2)  # of the channel's place, at the start of mu
EPSILON = 1e-5  # of the norm, for every unit of a head
SHORTEST = 1e-12


class RWKV7(Outer):
    """RWKV-7's time mixing: a matrix with a decay and a rate of learning for every key (Peng et al. 2025).

    The state is S (heads, d, d) and the input before, (1, I). The outputs are (B, N).

    Args:
        input_size: I, the width of an input.
        hidden_size: N, a multiple of `heads`; d = N / heads.
        rng: generator for the initial values.
        make_recurrent: unused, as there is no recurrent matrix.
        heads: number of heads.
        rank: rank of the maps that give w, a and g, each of two thin matrices.
        negative: whether a is in (0, 1 + w), so that eigenvalues may be negative down to -1.
    """

    gates: tuple[str, ...] = MIXED
    opened: ClassVar[tuple[str, ...]] = ("w", "a", "g")

    def __init__(
        self,
        input_size: int,
        hidden_size: Positive,
        rng: Rng,
        make_recurrent: MakeRecurrent,
        heads: Positive = 4,
        rank: Positive = 8,
        negative: bool = False,
    ) -> None:
        super().__init__(input_size, hidden_size, rng, make_recurrent, heads)
        I, N, d = input_size, hidden_size, self.width
        self.negative, self.sizes = negative, (N, N, N, rank, rank, rank)
        bounds = (0.5, 0.05, 0.5, 0, 0, 0)
        maps = [uniform(rng, (rows, I), b * I**-0.5) for rows, b in zip(self.sizes, bounds, strict=True)]
        self.U = nn.Parameter(torch.cat(maps))
        places = np.arange(I) / I
        self.mu = nn.Parameter(tensor(np.concatenate([1 - places**power for power in POWERS])))
        self.W2, self.A2, self.G2 = (nn.Parameter(0.1 * orthogonal(rng, (N, rank))) for _ in range(3))
        u, q = np.linspace(0, 1, N), np.tile(np.linspace(-1, 1, d) if d > 1 else np.zeros(1), heads)
        zigzag = q * np.abs(q)
        self.w0 = nn.Parameter(tensor(-5.5 + 6 * u + 2.5 * zigzag))
        self.a0 = nn.Parameter(tensor(-0.19 + 0.3 * zigzag + 0.4 * (u - 0.5)))
        self.K, self.L = nn.Parameter(tensor(0.71 - 0.1 * (u - 0.5))), nn.Parameter(torch.full((N,), 1.02))
        self.R = nn.Parameter(torch.full((N,), -0.04))
        self.scale, self.shift = nn.Parameter(torch.ones(N)), nn.Parameter(torch.zeros(N))
        self.O = nn.Parameter(uniform(rng, (N, N), N**-0.5))

    def state_shapes(self) -> tuple[tuple[int, ...], ...]:
        return (self.heads, self.width, self.width), (1, self.input_size)

    def project(self, x: Tensor) -> Tensor:
        """The inputs themselves, (T, B, I), since the maps read the input before, too."""
        return vectors(x, self.U)

    def writes(
        self,
        p: Tensor,
        before: tuple[Tensor, ...],
        convolve: Convolve,
        heads: Callable[..., tuple[Writes, Tensor]] | None = None,
    ) -> tuple[Writes, tuple[Tensor, ...], tuple[Tensor, ...]]:
        """See `Outer`; `read` is told the bonus and the output gate. An engine may have its own way of `written`."""
        whole = torch.cat([before[0], p], dim=1)
        change = whole[:, :-1] - p
        mixed = (p + change * mu for mu in self.mu.chunk(len(MIXED)))
        r, k, v, w, a, g = (F.linear(x, M) for x, M in zip(mixed, self.U.split(self.sizes), strict=True))
        w, a = F.linear(torch.tanh(w), self.W2, self.w0), F.linear(a, self.A2, self.a0)
        writes, bonus = (heads or type(self).written)(self, r, k, v, w, a)
        return writes, (bonus, F.linear(torch.sigmoid(g), self.G2)), (whole[:, -1:],)

    def written(self, r: Tensor, k: Tensor, v: Tensor, w: Tensor, a: Tensor) -> tuple[Writes, Tensor]:
        """Writes and the bonus from maps of the input, (B, T, N) each; w and a are those before their sigmoids."""
        ln_w = -math.exp(-0.5) * torch.sigmoid(w)
        a = torch.sigmoid(a) * (1 + ln_w.exp() if self.negative else 1)
        r, k, v, ln_w, a, removed, written = map(self.split, (r, k, v, ln_w, a, k * self.K, k * (1 + (a - 1) * self.L)))
        removed = removed / removed.norm(dim=-1, keepdim=True).clamp(min=SHORTEST)
        bonus = (r * written * self.split(self.R)).sum(-1, keepdim=True) * v
        return Writes(ln_w, r, written, v, removed * torch.exp(-ln_w), a * removed), bonus

    def read(self, o: Tensor, *told: Tensor) -> Tensor:
        """See `Outer`."""
        bonus, g = told
        o = F.layer_norm(o, (self.width,), eps=EPSILON * self.width).flatten(-2) * self.scale + self.shift
        return F.linear((o + bonus.flatten(-2)) * g, self.O)

    @property
    def products(self) -> int:
        return 4

    def learning_rate_scales(self) -> dict[str, float]:
        """Rates as in the authors' code: no weight decay but for matrices, and w_0 at twice the rate."""
        return dict.fromkeys(("mu", "a0", "K", "L", "R", "scale", "shift"), 1.0) | {"w0": 2.0}
