"""mLSTM: a matrix memory with exponential gates that do not see the state.

    C_t = f_t C_{t-1} + i_t k_t v_t^T / sqrt(d),   n_t = f_t n_{t-1} + i_t k_t / sqrt(d)
    h_t = C_t^T q_t / max(|n_t . q_t|, 1),   y_t = sigmoid(U_o x_t + b_o) * norm(h_t)

in every head, with C (d, d). The gates i = exp(U_i x + b_i) and f = sigmoid(U_f x + b_f) are scalars; C and n are kept
divided by exp(m_t), m_t = max(ln f_t + m_{t-1}, ln i_t), so that nothing overflows. The norm gives a head zero mean and
unit variance. q, k and v are linear in x; q and k then pass a causal convolution over the last steps, channel by
channel, and SiLU. In the authors' block these stand before the maps that give q and k.
Beck, Poeppel, Spanring, Auer, Prudnikova, Kopp, Klambauer, Brandstetter & Hochreiter (2024), "xLSTM: Extended Long
Short-Term Memory", eq. 19 to 27.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from orthobench.cells.base import Matrices, State
from orthobench.cells.convolution import convolved
from orthobench.cells.heads import Headed
from orthobench.cells.initial import MakeRecurrent
from orthobench.initializers import Rng, normal, uniform
from orthobench.schema import OptionalPositive, Positive


class MLSTM(Headed):
    """The state is (C, n, m) of shapes (heads, d, d), (heads, d) and (heads,); only the outputs (B, N) are kept.

    With a convolution the last inputs of it are a fourth part of the state.

    Args:
        input_size: I.
        hidden_size: N, a multiple of `heads`; d = N / heads.
        rng: generator for the initial values.
        make_recurrent: unused, as there is no recurrent matrix.
        heads: number of heads.
        convolution: steps that the convolution sees, the current one included; null for none, and no SiLU.
    """

    gates: tuple[str, ...] = ("q", "k", "v", "o", "i", "f")
    returns_output: bool = True

    def __init__(
        self,
        input_size: int,
        hidden_size: Positive,
        rng: Rng,
        make_recurrent: MakeRecurrent,
        heads: Positive = 4,
        convolution: OptionalPositive = 4,
    ) -> None:
        super().__init__(input_size, hidden_size, rng, make_recurrent, heads)
        I, N = input_size, hidden_size
        weights = normal(rng, (4 * N, I), math.sqrt(2 / (5 * I)))
        self.U = nn.Parameter(torch.cat([weights, torch.zeros(2 * heads, I)]))
        self.b = nn.ParameterDict({
            "o": nn.Parameter(torch.zeros(N)),
            "i": nn.Parameter(normal(rng, (heads,), 0.1)),
            "f": nn.Parameter(torch.linspace(3, 6, heads)),
        })  # fmt: skip
        self.scale, self.convolution = nn.Parameter(torch.ones(N)), convolution
        if convolution is not None:
            self.kernel = nn.Parameter(uniform(rng, (convolution, 2 * N), convolution**-0.5))

    def state_shapes(self) -> tuple[tuple[int, ...], ...]:
        shapes = (self.heads, self.width, self.width), (self.heads, self.width), (self.heads,)
        return shapes if self.convolution is None else (*shapes, (self.convolution - 1, 2 * self.hidden_size))

    def joint_bias(self) -> Tensor:
        """The bias of q, k, v and the gates o, i and f, (4N + 2 heads,); the first three have none."""
        return torch.cat([self.U.new_zeros(3 * self.hidden_size), *(self.b[gate] for gate in "oif")])

    def step(self, p_t: Tensor, state: State, W: Matrices) -> tuple[Tensor, State]:
        (C, n, m, *before), N, H = state, self.hidden_size, self.heads
        qk, v, o, log_i, f = p_t.split([2 * N, N, N, H, H], dim=-1)
        if before:
            qk, *before = convolved(qk, before[0], self.kernel)
        q, k, v = map(self.split, (*qk.chunk(2, dim=-1), v))
        kept = F.logsigmoid(f) + m
        m = torch.maximum(kept, log_i)
        i, f, k = torch.exp(log_i - m), torch.exp(kept - m), k * self.width**-0.5
        C = f[..., None, None] * C + (i[..., None] * k)[..., None] * v[..., None, :]
        n = f[..., None] * n + i[..., None] * k
        return self.read((q[..., None] * C).sum(-2), (n * q).sum(-1), m, o), (C, n, m, *before)

    def read(self, recalled: Tensor, normaliser: Tensor, m: Tensor, o: Tensor) -> Tensor:
        """The output y (..., N).

        Args:
            recalled: C^T q, (..., heads, d).
            normaliser: n . q, (..., heads).
            m: of the same shape.
            o: what the output gate is computed from, (..., N).
        """
        size = torch.maximum(normaliser.abs(), torch.exp(-m))
        size = torch.where(size > 0, size, 1.0)  # a query of zeros, where exp(-m) is too small for the type
        h = F.layer_norm(recalled / size[..., None], (self.width,))
        return torch.sigmoid(o) * h.flatten(-2) * self.scale

    def multiply_adds(self, tokens: bool = False) -> int:
        """See `Cell`: the product that is added to C, that of C and q, and n . q."""
        return super().multiply_adds(tokens) + self.hidden_size * (2 * self.width + 1)

    @property
    def values_per_step(self) -> int:
        return self.hidden_size * (3 * self.width + 8)
