"""sLSTM: an LSTM with exponential gates, a normaliser, and memory mixing within heads.

    i_t = exp(z_i),   f_t = sigmoid(z_f),   o_t = sigmoid(z_o),   z = U x_t + R h_{t-1} + b
    c_t = f_t c_{t-1} + i_t tanh(z_c),   n_t = f_t n_{t-1} + i_t,   h_t = o_t c_t / n_t

R is block-diagonal, with a block per head. c and n are kept divided by exp(m_t), m_t = max(ln f_t + m_{t-1}, z_i), so
that nothing overflows; before the first step m is so low that the first input sets it. In the authors' code the gates i
and f read, in place of x, a causal convolution of it over the last steps, channel by channel, and SiLU. Beck, Poeppel,
Spanring, Auer, Prudnikova, Kopp, Klambauer, Brandstetter & Hochreiter (2024), "xLSTM: Extended Long Short-Term Memory",
eq. 8 to 17.
"""

from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from orthobench.cells.base import Matrices, State, projection
from orthobench.cells.convolution import convolved, vectors
from orthobench.cells.heads import Headed
from orthobench.cells.initial import MakeRecurrent
from orthobench.common.schema import OptionalPositive, Positive
from orthobench.parametrizations.initializers import Rng, uniform, weight

LOWEST = -1e30


class SLSTM(Headed):
    """xLSTM's scalar memory with exponential gates (Beck et al. 2024).

    The state is h (N,), c (N,), n (N,) and m (N,). With a convolution of K steps its last inputs, (K - 1, I), are a
    fifth part. The gates are input, forget, candidate and output, in this order. R starts at zero.

    Args:
        input_size: I, the width of an input.
        hidden_size: N, a multiple of `heads`.
        rng: generator for the initial values.
        make_recurrent: unused, as there is no recurrent matrix over all units.
        heads: number of blocks of R.
        input_init: scheme of the input weights, or a bound; see `MLSTM` for `auto`.
        forget_bias: how the forget biases start within a head: `linear` evenly from 3 to 6, `power_law` from 5 to -7
            as 5 - 12 u^0.3, u evenly from 0 to 1, which the authors' code has in the first block.
        convolution: steps that the gates i and f see of x, the current one included; null for x itself.
    """

    gates: tuple[str, ...] = ("i", "f", "c", "o")
    opened: ClassVar[tuple[str, ...]] = ("f", "o")
    states: ClassVar[int] = 4

    def __init__(
        self,
        input_size: int,
        hidden_size: Positive,
        rng: Rng,
        make_recurrent: MakeRecurrent,
        heads: Positive = 4,
        input_init: str | float = "glorot",
        forget_bias: Literal["linear", "power_law"] = "linear",
        convolution: OptionalPositive = None,
    ) -> None:
        super().__init__(input_size, hidden_size, rng, make_recurrent, heads)
        I, N, d = input_size, hidden_size, self.width
        scheme = "small" if input_init == "auto" else input_init
        self.U = nn.Parameter(torch.cat([weight(scheme, rng, (N, I)) for _ in self.gates]))
        self.R = nn.Parameter(torch.zeros(4, heads, d, d))
        spread = torch.linspace(3, 6, d) if forget_bias == "linear" else 5 - 12 * torch.linspace(0, 1, d) ** 0.3
        b = {gate: torch.zeros(N) for gate in self.gates} | {"f": spread.repeat(heads)}
        self.b = nn.ParameterDict({gate: nn.Parameter(bias) for gate, bias in b.items()})
        self.convolution = convolution
        if convolution is not None:
            self.kernel = nn.Parameter(uniform(rng, (convolution, I), convolution**-0.5))

    def state_shapes(self) -> tuple[tuple[int, ...], ...]:
        tail = [] if self.convolution is None else [(self.convolution - 1, self.input_size)]
        return (*super().state_shapes(), *tail)

    def initial_state(self, batch_size: int) -> State:
        h, c, n, m, *before = super().initial_state(batch_size)
        return h, c, n, torch.full_like(m, LOWEST), *before

    def project(self, x: Tensor) -> Tensor:
        """Pre-activations of the gates, (T, B, 4N); with a convolution those of c and o, and x itself."""
        if self.convolution is None:
            return super().project(x)
        half = 2 * self.hidden_size
        return torch.cat([projection(x, self.U[half:], self.joint_bias()[half:]), vectors(x, self.U)], dim=-1)

    def seen(self, y: Tensor) -> Tensor:
        """Pre-activations of the gates i and f (..., 2N), which read y (..., I) from a convolution."""
        half = 2 * self.hidden_size
        return F.linear(y, self.U[:half], self.joint_bias()[:half])

    def joint_bias(self) -> Tensor:
        return torch.cat([self.b[gate] for gate in self.gates])

    def matrices(self) -> Matrices:
        """R as (heads, d, 4d), so that a step needs one product per head."""
        return (self.R.permute(1, 3, 0, 2).flatten(2),)

    def step(self, p_t: Tensor, state: State, W: Matrices) -> State:
        h, c, n, m, *before = state
        if before:
            p_t, x_t = p_t.split([2 * self.hidden_size, self.input_size], dim=-1)
            y, *before = convolved(x_t, before[0], self.kernel)
            p_t = torch.cat([self.seen(y), p_t], dim=-1)
        mixed = torch.bmm(self.split(h).transpose(0, 1), W[0]).unflatten(-1, (4, self.width))
        z = p_t + mixed.permute(1, 2, 0, 3).flatten(1)
        log_i, f, v, o = z.chunk(4, dim=-1)
        kept = F.logsigmoid(f) + m
        m = torch.maximum(kept, log_i)
        i, f = torch.exp(log_i - m), torch.exp(kept - m)
        c, n = f * c + i * torch.tanh(v), f * n + i
        return torch.sigmoid(o) * c / n, c, n, m, *before

    def multiply_adds(self, tokens: bool = False) -> int:
        """See `Cell`: what passes a convolution is no token any more."""
        looked_up = tokens and self.convolution is not None
        return super().multiply_adds(tokens) + (2 * self.hidden_size * self.input_size if looked_up else 0)

    @property
    def values_per_step(self) -> int:
        return 8 * self.hidden_size
