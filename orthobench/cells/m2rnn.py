"""M2RNN: a matrix state that goes through tanh, so that it is not linear in itself.

    Z_t = tanh(S_{t-1} W + k_t v_t^T),   S_t = f_t S_{t-1} + (1 - f_t) Z_t,   o_t = S_t^T q_t + D * v_t
    y_t = O norm(o_t * SiLU(U_g x_t))

in every head, with S (d_k, d_v), W (d_v, d_v) and f = exp(-A softplus(U_f x + b)). Every key's row of S is the state
of an Elman cell, and the rows of a head have one matrix W. q, k and v pass a causal convolution over the last steps,
channel by channel, and SiLU; q and k are shared by all heads. The norm is one over all heads, behind the gate.
Mishra, Tan, Stoica, Gonzalez & Dao (2026), "M2RNN: Non-Linear RNNs with Matrix-Valued States for Scalable Language
Modeling"; W starts as in the authors' code, the input's maps as nn.Linear.
"""

from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from orthobench.cells.base import Matrices, State
from orthobench.cells.convolution import Convolve
from orthobench.cells.heads import GatedNorm, Headed, gated_norm
from orthobench.cells.outer import decay_start, one_step
from orthobench.common.schema import OptionalPositive, PositiveFloat
from orthobench.parametrizations.initializers import normal, uniform


class M2RNN(Headed):
    """A matrix state that goes through tanh (Mishra et al. 2026).

    The state is S (heads, d_k, d_v) and, with a convolution of K steps, its last inputs (K - 1, C). The outputs are
    (B, N).

    Args:
        key_width: d_k; N / heads when null.
        convolution: steps that the convolution sees, the current one included; null for none, and no SiLU.
        activation: activation of the state; `identity` leaves the cell linear in its state.
        recurrent_start: W at the start, the identity as in the authors' code, or `normal`, of variance 1 / d_v.
        state_gradient_clip: bound on every entry of the gradient of S at every step, 1 in the authors' code; null for
            none.
        stratified: whether A and dt start spread evenly over the heads, in place of independent draws.
        **kwargs: see `Headed`.
    """

    gates: tuple[str, ...] = ("q", "k", "v", "g", "f")
    returns_output: bool = True

    def __init__(
        self,
        key_width: OptionalPositive = 16,
        convolution: OptionalPositive = 4,
        activation: Literal["tanh", "identity"] = "tanh",
        recurrent_start: Literal["identity", "normal"] = "identity",
        state_gradient_clip: PositiveFloat | None = None,
        stratified: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(key_width=key_width, **kwargs)
        rng, heads = kwargs["rng"], self.heads
        K, V = self.key_width, self.value_width
        P, self.convolution, self.activation = heads * V, convolution, activation
        self.bound, self.sizes = state_gradient_clip, (2 * K + P, P, heads)
        self.U = nn.Parameter(uniform(rng, (sum(self.sizes), self.input_size), self.input_size**-0.5))
        if convolution is not None:
            self.kernel = nn.Parameter(uniform(rng, (convolution, self.sizes[0]), convolution**-0.5))
        self.W = nn.Parameter(
            torch.eye(V).repeat(heads, 1, 1) if recurrent_start == "identity" else normal(rng, (heads, V, V), V**-0.5)
        )
        ln_A, dt = decay_start(rng, heads, A=[0, 16], dt=[0.001, 0.1], stratified=stratified)
        self.A, self.dt, self.D = nn.Parameter(ln_A), nn.Parameter(dt), nn.Parameter(torch.ones(P))
        self.scale = nn.Parameter(torch.ones(P))
        self.O = nn.Parameter(uniform(rng, (self.hidden_size, P), P**-0.5))

    def state_shapes(self) -> tuple[tuple[int, ...], ...]:
        S = (self.heads, self.key_width, self.value_width)
        return (S,) if self.convolution is None else (S, (self.convolution - 1, self.sizes[0]))

    def inputs(
        self, p: Tensor, before: tuple[Tensor, ...], convolve: Convolve
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, tuple[Tensor, ...]]:
        """Inputs of some steps: f (B, T, H), q and k (B, T, d_k), v (B, T, H, d_v), the output gate's numbers, and the
        last inputs that later steps see.

        Args:
            p: their projections, (B, T, M).
            before: the last inputs before them.
            convolve: a causal convolution with SiLU, see `orthobench.scan.fused.convolution.convolve`.
        """
        qkv, g, f = p.split(self.sizes, dim=-1)
        if before:
            qkv, last = convolve(qkv, before[0], self.kernel)
            before = (last,)
        q, k, v = qkv.split([self.key_width, self.key_width, g.shape[-1]], dim=-1)
        return torch.exp(-self.A.exp() * F.softplus(f + self.dt)), q, k, self.split(v), g, before

    def read(self, o: Tensor, v: Tensor, g: Tensor, norm: GatedNorm = gated_norm) -> Tensor:
        """The outputs (..., N) of S^T q and v (..., heads, d_v), and of what the gate is computed from."""
        o = (o + self.D.unflatten(0, (self.heads, -1)) * v).flatten(-2)
        return F.linear(norm(o, self.scale, g, first=True), self.O)

    def step(self, p_t: Tensor, state: State, W: Matrices) -> tuple[Tensor, State]:
        S, *before = state
        *parts, before = self.inputs(p_t[:, None], tuple(before), one_step)
        f, q, k, v, g = (part[:, 0] for part in parts)
        f = f[..., None, None]
        Z = S @ self.W + k[:, None, :, None] * v[:, :, None]
        S = f * S + (1 - f) * (torch.tanh(Z) if self.activation == "tanh" else Z)
        if self.bound is not None:
            S = Clipped.apply(S, self.bound)
        return self.read((q[:, None, :, None] * S).sum(-2), v, g), (S, *before)

    def multiply_adds(self, tokens: bool = False) -> int:
        """See `Cell`: W acts on every key's row of S, k v^T is added to it, and q reads it."""
        numbers = self.heads * self.key_width * self.value_width
        return super().multiply_adds(tokens) + (self.key_width - 1) * self.W.numel() + 2 * numbers

    @property
    def values_per_step(self) -> int:
        return self.heads * self.value_width * (4 * self.key_width + 8)

    def learning_rate_scales(self) -> dict[str, float]:
        """The decay's own parameters, the skip and the norm's gain have no weight decay, as in the authors' code."""
        return dict.fromkeys(("A", "dt", "D", "scale"), 1.0)


class Clipped(torch.autograd.Function):
    """The identity, whose gradient is bounded entry by entry."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, bound: float) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, float], output: Tensor) -> None:
        ctx.bound = inputs[1]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return grads[0].clamp(-ctx.bound, ctx.bound), None
