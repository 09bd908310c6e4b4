"""Mamba-2: a matrix that decays by one number a head and is written to by keys that all heads share.

    dt_t = softplus(U_r x_t + b),   S <- exp(-A dt_t) S + dt_t B_t X_t^T,   o_t = S^T C_t + D X_t
    y_t = O norm(o_t * SiLU(U_z x_t))

in every head, with S (d_k, d_v) and positive numbers A and D of the head. X (heads, d_v), B and C (d_k) are linear in x
and pass a causal convolution over the last steps, channel by channel, a bias and SiLU. The norm is one over all heads,
behind the gate. Dao & Gu (2024), "Transformers are SSMs: Generalized Models and Efficient Algorithms Through Structured
State Space Duality", section 7.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from orthobench.cells.convolution import Convolve
from orthobench.cells.heads import GatedNorm, gated_norm
from orthobench.cells.outer import Outer, Writes, decay_start
from orthobench.common.schema import OptionalPositive, Positive
from orthobench.parametrizations.initializers import uniform


class Mamba2(Outer):
    """Mamba-2: a decaying matrix whose keys all heads share (Dao & Gu 2024).

    The state is S (heads, d_k, d_v) and the last inputs of a convolution of K steps, (K - 1, C). The outputs are
    (B, N).

    Args:
        key_width: d_k, the authors' d_state; N / heads when null.
        convolution: steps that the convolution sees, the current one included.
        stratified: whether A and dt start spread evenly over the heads, in place of independent draws.
        **kwargs: see `Headed`.
    """

    gates: tuple[str, ...] = ("z", "x", "B", "C", "r")

    def __init__(
        self,
        key_width: OptionalPositive = 16,
        convolution: Positive = 4,
        stratified: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(key_width=key_width, **kwargs)
        rng, heads = kwargs["rng"], self.heads
        P = heads * self.value_width
        self.sizes, self.convolution = (P + 2 * self.key_width, P, heads), convolution
        self.U = nn.Parameter(uniform(rng, (sum(self.sizes), self.input_size), self.input_size**-0.5))
        self.kernel = nn.Parameter(uniform(rng, (convolution, self.sizes[0]), convolution**-0.5))
        self.shift = nn.Parameter(uniform(rng, (self.sizes[0],), convolution**-0.5))
        ln_A, dt = decay_start(rng, heads, A=[1, 16], dt=[0.001, 0.1], stratified=stratified)
        self.A, self.dt, self.D = nn.Parameter(ln_A), nn.Parameter(dt), nn.Parameter(torch.ones(heads))
        self.scale = nn.Parameter(torch.ones(P))
        self.O = nn.Parameter(uniform(rng, (self.hidden_size, P), P**-0.5))

    def state_shapes(self) -> tuple[tuple[int, ...], ...]:
        return (self.heads, self.key_width, self.value_width), (self.convolution - 1, self.sizes[0])

    def writes(
        self, p: Tensor, before: tuple[Tensor, ...], convolve: Convolve
    ) -> tuple[Writes, tuple[Tensor, ...], tuple[Tensor, ...]]:
        """See `Outer`; `read` is told D X and what the gate is computed from."""
        mixed, z, r = p.split(self.sizes, dim=-1)
        seen, last = convolve(mixed, before[0], self.kernel, self.shift)
        X, B, C = seen.split([z.shape[-1], self.key_width, self.key_width], dim=-1)
        X, dt = self.split(X), F.softplus(r + self.dt)
        B, C = (y[:, :, None].expand(-1, -1, self.heads, -1) for y in (B, C))
        written = Writes((-self.A.exp() * dt)[..., None], C, B, dt[..., None] * X)
        return written, (self.D[:, None] * X, z), (last,)

    def read(self, o: Tensor, *told: Tensor, norm: GatedNorm = gated_norm) -> Tensor:
        """See `Outer`."""
        skipped, z = told
        return F.linear(norm((o + skipped).flatten(-2), self.scale, z, first=True), self.O)

    @property
    def products(self) -> int:
        return 2

    def learning_rate_scales(self) -> dict[str, float]:
        """The decay's own parameters, the skip and the norm's gain have no weight decay, as in the authors' code."""
        return dict.fromkeys(("A", "dt", "D", "scale"), 1.0)
