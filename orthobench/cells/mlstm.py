"""mLSTM: a matrix memory with exponential gates that do not see the state.

    C_t = f_t C_{t-1} + i_t k_t v_t^T / sqrt(d),   n_t = f_t n_{t-1} + i_t k_t / sqrt(d)
    h_t = C_t^T q_t / max(|n_t . q_t|, 1),   y_t = sigmoid(U_o x_t + b_o) * norm(h_t)

in every head, with C (d, d), or (d_k, d) and sqrt(d_k). The gates i = exp(U_i x + b_i) and f = sigmoid(U_f x + b_f)
are scalars; in the authors' code they read q, k and v of all heads in place of x. C and n are kept divided by exp(m_t),
m_t = max(ln f_t + m_{t-1}, ln i_t), so that nothing overflows. The norm gives a head zero mean and unit variance. q, k
and v are linear in x; q and k then pass a causal convolution over the last steps, channel by channel, and SiLU. In the
authors' block these stand before the maps that give q and k.

With `read=orthogonal`, h_t = M_t^T q_t with M_t nearly the orthogonal factor of C_t: five Newton-Schulz steps from C_t
at norm one, after which singular values that were within 1 : 100 are between 0.68 and 1.21. M is not written back, and
n is not asked for, as a norm follows. Tambde (2026), "Matrix Orthogonalization Improves Memory in Recurrent Models".
Beck, Poeppel, Spanring, Auer, Prudnikova, Kopp, Klambauer, Brandstetter & Hochreiter (2024), "xLSTM: Extended Long
Short-Term Memory", eq. 19 to 27.
"""

from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from orthobench.cells.base import Matrices, State
from orthobench.cells.convolution import convolved
from orthobench.cells.heads import Headed
from orthobench.cells.initial import MakeRecurrent
from orthobench.common.schema import OptionalPositive, Positive
from orthobench.parametrizations.initializers import Rng, normal, uniform, weight

NEWTON_SCHULZ = (
    (3.4445, -4.7750, 2.0315),
) * 5  # the coefficients of X, (X X^T) X and (X X^T)^2 X: Jordan (2024), Muon
LEAST_NORM = 1e-6


class MLSTM(Headed):
    """xLSTM's matrix memory with exponential gates (Beck et al. 2024).

    The state is C (heads, d_k, d), n (heads, d_k), m (heads,) and, with a convolution of K steps, its last inputs
    (K - 1, 2 heads d_k). The outputs are (B, N).

    Args:
        input_size: I, the width of an input.
        hidden_size: N, a multiple of `heads`; d = N / heads.
        rng: generator for the initial values.
        make_recurrent: unused, as there is no recurrent matrix.
        heads: number of heads.
        convolution: steps that the convolution sees, the current one included; null for none, and no SiLU.
        key_width: d_k; d when null.
        gate_inputs: what the gates i and f read, `x` as in the paper or `qkv` as in the authors' code.
        input_init: scheme of the input weights, or a bound; `auto` is `small`, and where inputs are one-hot tokens
            `small_one_hot`, as if each were an embedding of unit variance, which the authors' cell reads.
        read: what q reads, C itself or nearly its orthogonal factor.
    """

    gates: tuple[str, ...] = ("q", "k", "v", "o", "i", "f")
    opened: ClassVar[tuple[str, ...]] = ("f", "o")
    returns_output: bool = True
    gains: ClassVar[tuple[str, ...]] = ("scale",)

    def __init__(
        self,
        input_size: int,
        hidden_size: Positive,
        rng: Rng,
        make_recurrent: MakeRecurrent,
        heads: Positive = 4,
        convolution: OptionalPositive = 4,
        key_width: OptionalPositive = None,
        gate_inputs: Literal["x", "qkv"] = "x",
        input_init: str | float = "small",
        read: Literal["plain", "orthogonal"] = "plain",
    ) -> None:
        super().__init__(input_size, hidden_size, rng, make_recurrent, heads, key_width)
        I, N, K = input_size, hidden_size, heads * self.key_width
        weights = weight("small" if input_init == "auto" else input_init, rng, (2 * K + 2 * N, I))
        self.orthogonal = read == "orthogonal"
        self.gate_inputs, self.sizes = gate_inputs, (2 * K, N, N, *([heads] * 2 if gate_inputs == "x" else []))
        self.U = nn.Parameter(torch.cat([weights, torch.zeros(sum(self.sizes[3:]), I)]))
        if gate_inputs == "qkv":
            self.G = nn.Parameter(torch.zeros(2 * heads, 2 * K + N))
        self.b = nn.ParameterDict({
            "o": nn.Parameter(torch.zeros(N)),
            "i": nn.Parameter(normal(rng, (heads,), 0.1)),
            "f": nn.Parameter(torch.linspace(3, 6, heads)),
        })  # fmt: skip
        self.scale, self.convolution = nn.Parameter(torch.ones(N)), convolution
        if convolution is not None:
            self.kernel = nn.Parameter(uniform(rng, (convolution, 2 * K), convolution**-0.5))

    def state_shapes(self) -> tuple[tuple[int, ...], ...]:
        shapes = (self.heads, self.key_width, self.width), (self.heads, self.key_width), (self.heads,)
        return shapes if self.convolution is None else (*shapes, (self.convolution - 1, self.sizes[0]))

    def joint_bias(self) -> Tensor:
        """The bias of q, k, v, the gate o and, where they read x, the gates i and f; the first three have none."""
        gates = "oif" if self.gate_inputs == "x" else "o"
        return torch.cat([self.U.new_zeros(sum(self.sizes[:2])), *(self.b[gate] for gate in gates)])

    def step(self, p_t: Tensor, state: State, W: Matrices) -> tuple[Tensor, State]:
        (C, n, m, *before) = state
        qk, v, o, *gates = p_t.split(self.sizes, dim=-1)
        if before:
            qk, *before = convolved(qk, before[0], self.kernel)
        log_i, f = gates or self.gates_of(qk, v)
        q, k, v = map(self.split, (*qk.chunk(2, dim=-1), v))
        kept = F.logsigmoid(f) + m
        m = torch.maximum(kept, log_i)
        i, f, k = torch.exp(log_i - m), torch.exp(kept - m), k * self.key_width**-0.5
        C = f[..., None, None] * C + (i[..., None] * k)[..., None] * v[..., None, :]
        n = f[..., None] * n + i[..., None] * k
        if self.orthogonal:
            y = self.shown((q[..., None] * orthogonalised(C)).sum(-2), o)
            return y, (C, n, m, *before)
        return self.read((q[..., None] * C).sum(-2), (n * q).sum(-1), m, o), (C, n, m, *before)

    def gates_of(self, qk: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Pre-activations of the gates i and f, (..., heads) each, of q and k (..., 2 K) and v (..., N)."""
        z = F.linear(torch.cat([qk, v], dim=-1), self.G, torch.cat([self.b["i"], self.b["f"]]))
        log_i, f = z.chunk(2, dim=-1)
        return log_i, f

    def read(self, recalled: Tensor, normaliser: Tensor, m: Tensor, o: Tensor) -> Tensor:
        """The output y (..., N).

        Args:
            recalled: C^T q, (..., heads, d).
            normaliser: n . q, (..., heads).
            m: of the same shape.
            o: what the output gate is computed from, (..., N).
        """
        low = m.clamp(max=0)  # both sides of the fraction times exp(low), as exp(-m) is too large for the type
        size = torch.maximum(normaliser.abs() * low.exp(), torch.exp(low - m))
        size = torch.where(size > 0, size, 1.0)  # a query of zeros, where exp(-m) is too small for the type
        return self.shown(recalled * (low.exp() / size)[..., None], o)

    def shown(self, h: Tensor, o: Tensor) -> Tensor:
        """The output y (..., N) of h (..., heads, d) and of what the output gate is computed from, (..., N)."""
        return torch.sigmoid(o) * F.layer_norm(h, (self.width,)).flatten(-2) * self.scale

    def multiply_adds(self, tokens: bool = False) -> int:
        """See `Cell`: the product that is added to C, that of C and q, n . q, and the steps of `orthogonalised`."""
        low, high = sorted((self.key_width, self.width))
        steps = len(NEWTON_SCHULZ) * low * (2 * low * high + low * low) if self.orthogonal else 0
        return super().multiply_adds(tokens) + self.heads * (self.key_width * (2 * self.width + 1) + steps)

    @property
    def values_per_step(self) -> int:
        return self.hidden_size * (3 * self.key_width + 8)


def orthogonalised(C: Tensor) -> Tensor:
    """Matrices (..., d_k, d) with nearly equal singular values and the singular vectors of C; zero where C is."""
    wide = C.shape[-2] <= C.shape[-1]
    X = C if wide else C.transpose(-1, -2)
    square = X.square().sum((-2, -1), keepdim=True)
    X = X / (torch.where(square > 0, square, 1.0).sqrt() + LEAST_NORM)
    for a, b, c in NEWTON_SCHULZ:
        A = X @ X.transpose(-1, -2)
        X = a * X + (b * A + c * A @ A) @ X
    return X if wide else X.transpose(-1, -2)
