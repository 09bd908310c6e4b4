"""DeltaNet and DeltaProduct: a matrix that is written by the delta rule, one or several times a step.

    S <- g_t S                                                  where gated
    S <- S + beta_j k_j (v_j - S^T k_j)^T,   j = 1 ... n_h      that is S <- (I - beta_j k_j k_j^T) S + beta_j k_j v_j^T
    o_t = S^T q_t

in every head, with S (d_k, d_v). q, k and v are linear in x and pass a causal convolution over the last steps, channel
by channel, and SiLU; q and k have unit length. beta = s sigmoid(U_b x_t): with s = 2 the factor I - beta k k^T has an
eigenvalue in (-1, 1) and nears a reflection, n_h of which make a step; with s = 1 it is in (0, 1). The gate is
g_t = exp(-exp(A) softplus(U_a x_t + dt)). The outputs of a head get unit mean square, are multiplied by
SiLU(U_g x_t) where there is an output gate, and a matrix mixes them.
Yang, Wang, Zhang, Shen & Kim (2024), "Parallelizing Linear Transformers with the Delta Rule over Sequence Length", with
n_h = 1; Grazzi, Siems, Zela, Franke, Hutter & Pontil (2025), "Unlocking State-Tracking in Linear RNNs Through Negative
Eigenvalues"; Siems, Carstensen, Zela, Hutter, Pontil & Grazzi (2025), "DeltaProduct: Improving State-Tracking in Linear
RNNs via Householder Products".
"""

from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from orthobench.cells.base import Matrices, State, projection
from orthobench.cells.convolution import convolved
from orthobench.cells.heads import Headed, rms_normalised, unit
from orthobench.cells.outer import decay_start
from orthobench.common.schema import OptionalPositive, Positive
from orthobench.parametrizations.initializers import glorot_uniform, uniform

GAIN = 2**-2.5  # of the authors' start of every linear map


class DeltaProduct(Headed):
    """A matrix written by the delta rule, once or several times a step (Yang et al. 2024; Siems et al. 2025).

    The state is S (heads, d_k, d_v) and, with a convolution of K steps, its last inputs (K - 1, C). The outputs are
    (B, N).

    Args:
        products: n_h, writes per step; 1 is DeltaNet.
        negative: whether eigenvalues may be negative, s = 2.
        gated: whether S is damped before it is written.
        convolution: steps that the convolution sees, the current one included; null for none.
        output_gate: what the outputs of a head are multiplied by: `silu` of a map of x, or nothing.
        scaled_query: whether q is divided by sqrt(d_k), as in the authors' code, which acts through the norm's epsilon.
        **kwargs: see `Headed`.
    """

    gates: tuple[str, ...] = ("q", "k", "v", "beta")
    opened: ClassVar[tuple[str, ...]] = ("beta",)
    returns_output: bool = True
    gains: ClassVar[tuple[str, ...]] = ("scale",)

    def __init__(
        self,
        products: Positive = 1,
        negative: bool = True,
        gated: bool = False,
        convolution: OptionalPositive = 4,
        output_gate: Literal["none", "silu"] = "none",
        scaled_query: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        rng, heads = kwargs["rng"], self.heads
        I, N, n_h = self.input_size, self.hidden_size, products
        K, V = heads * self.key_width, heads * self.value_width
        self.products, self.reach, self.gated, self.convolution = n_h, 2.0 if negative else 1.0, gated, convolution
        self.output_gate, self.query_scale = output_gate, self.key_width**-0.5 if scaled_query else 1.0
        self.sizes = (K, n_h * K, n_h * V, n_h * heads, heads * gated, V * (output_gate == "silu"))
        self.channels = sum(self.sizes[:3])
        self.U = nn.Parameter(torch.cat([GAIN * glorot_uniform(rng, (size, I)) for size in self.sizes]))
        if convolution is not None:
            self.kernel = nn.Parameter(uniform(rng, (convolution, self.channels), convolution**-0.5))
        if gated:
            ln_A, dt = decay_start(rng, heads, A=[0, 16], dt=[0.001, 0.1])
            self.A, self.dt = nn.Parameter(ln_A), nn.Parameter(dt)
        self.scale = nn.Parameter(torch.ones(self.value_width))
        self.O = nn.Parameter(GAIN * glorot_uniform(rng, (N, V)))

    def state_shapes(self) -> tuple[tuple[int, ...], ...]:
        S = (self.heads, self.key_width, self.value_width)
        return (S,) if self.convolution is None else (S, (self.convolution - 1, self.channels))

    def project(self, x: Tensor) -> Tensor:
        """Inputs of q, k, v, beta, the gate and the output gate, (T, B, the sum of `sizes`)."""
        return projection(x, self.U, None)

    def step(self, p_t: Tensor, state: State, W: Matrices) -> tuple[Tensor, State]:
        S, *before = state
        mixed, b, a, shown = p_t.split([self.channels, *self.sizes[3:]], dim=-1)
        qkv, *before = convolved(mixed, before[0], self.kernel) if before else (F.silu(mixed),)
        S, q = self.write(S, qkv, b, a if self.gated else None)
        return self.read((q[..., None] * S).sum(-2), shown), (S, *before)

    def write(self, S: Tensor, qkv: Tensor, b: Tensor, a: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """S after the writes of one step, and the query (B, heads, d_k).

        Args:
            S: (B, heads, d_k, d_v).
            qkv: (B, (1 + n_h) K + n_h V), after SiLU.
            b: what beta is computed from, (B, n_h heads).
            a: what the gate is computed from, (B, heads); None where there is none.
        """
        q, k, v = qkv.split(self.sizes[:3], dim=-1)
        if a is not None:
            S = self.log_gate(a).exp()[..., None, None] * S
        keys, values = unit(self.split(k, self.products)), self.split(v, self.products)
        betas = self.reach * torch.sigmoid(b).unflatten(-1, (self.products, self.heads))
        for k_j, v_j, beta_j in zip(keys.unbind(1), values.unbind(1), betas.unbind(1), strict=True):
            missing = v_j - (k_j[..., None] * S).sum(-2)
            S = S + (beta_j[..., None] * k_j)[..., None] * missing[..., None, :]
        return S, unit(self.split(q))

    def log_gate(self, a: Tensor) -> Tensor:
        """The logarithm of the factor that damps S, (..., heads), from what it is computed from."""
        return -self.A.exp() * F.softplus(a + self.dt)

    def read(self, o: Tensor, shown: Tensor) -> Tensor:
        """The output (..., N) of what the query found (..., heads, d_v), and what the output gate is computed from."""
        o = rms_normalised(self.query_scale * o if self.query_scale != 1 else o, self.scale).flatten(-2)
        return F.linear(o if self.output_gate == "none" else o * F.silu(shown), self.O)

    def multiply_adds(self, tokens: bool = False) -> int:
        """See `Cell`: S is multiplied by every key and by the query, and every write adds a product of two vectors."""
        return super().multiply_adds(tokens) + (2 * self.products + 1) * self.heads * self.key_width * self.value_width

    def learning_rate_scales(self) -> dict[str, float]:
        """The gate's own parameters have no weight decay, as in the authors' code."""
        return {"A": 1.0, "dt": 1.0} if self.gated else {}

    @property
    def values_per_step(self) -> int:
        return self.heads * self.value_width * (3 * self.products * self.key_width + 8)
