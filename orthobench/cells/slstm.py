"""sLSTM: an LSTM with exponential gates, a normaliser, and memory mixing within heads.

    i_t = exp(z_i),   f_t = sigmoid(z_f),   o_t = sigmoid(z_o),   z = U x_t + R h_{t-1} + b
    c_t = f_t c_{t-1} + i_t tanh(z_c),   n_t = f_t n_{t-1} + i_t,   h_t = o_t c_t / n_t

R is block-diagonal, with a block per head. c and n are kept divided by exp(m_t), m_t = max(ln f_t + m_{t-1}, z_i), so
that nothing overflows; before the first step m is so low that the first input sets it. Beck, Poeppel, Spanring, Auer,
Prudnikova, Kopp, Klambauer, Brandstetter & Hochreiter (2024), "xLSTM: Extended Long Short-Term Memory", eq. 8 to 17.
"""

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from orthobench.cells.base import Matrices, State
from orthobench.cells.heads import Headed
from orthobench.cells.initial import MakeRecurrent
from orthobench.initializers import Rng, weight
from orthobench.schema import Positive

LOWEST = -1e30


class SLSTM(Headed):
    """The gates are input, forget, candidate and output, in this order; the state is (h, c, n, m).

    R starts at zero, and the forget biases are spread evenly from 3 to 6 within a head.

    Args:
        input_size: I.
        hidden_size: N, a multiple of `heads`.
        rng: generator for the initial values.
        make_recurrent: unused, as there is no recurrent matrix over all units.
        heads: number of blocks of R.
        input_init: scheme of the input weights, or a bound.
    """

    gates: tuple[str, ...] = ("i", "f", "c", "o")
    states: ClassVar[int] = 4

    def __init__(
        self,
        input_size: int,
        hidden_size: Positive,
        rng: Rng,
        make_recurrent: MakeRecurrent,
        heads: Positive = 4,
        input_init: str | float = "glorot",
    ) -> None:
        super().__init__(input_size, hidden_size, rng, make_recurrent, heads)
        I, N, d = input_size, hidden_size, self.width
        self.U = nn.Parameter(torch.cat([weight(input_init, rng, (N, I)) for _ in self.gates]))
        self.R = nn.Parameter(torch.zeros(4, heads, d, d))
        b = {gate: torch.zeros(N) for gate in self.gates} | {"f": torch.linspace(3, 6, d).repeat(heads)}
        self.b = nn.ParameterDict({gate: nn.Parameter(bias) for gate, bias in b.items()})

    def initial_state(self, batch_size: int) -> State:
        zero = self.U.new_zeros(batch_size, self.hidden_size)
        return zero, zero, zero, torch.full_like(zero, LOWEST)

    def joint_bias(self) -> Tensor:
        return torch.cat([self.b[gate] for gate in self.gates])

    def matrices(self) -> Matrices:
        """R as (heads, d, 4d), so that a step needs one product per head."""
        return (self.R.permute(1, 3, 0, 2).flatten(2),)

    def step(self, p_t: Tensor, state: State, W: Matrices) -> State:
        h, c, n, m = state
        mixed = torch.bmm(self.split(h).transpose(0, 1), W[0]).unflatten(-1, (4, self.width))
        z = p_t + mixed.permute(1, 2, 0, 3).flatten(1)
        log_i, f, v, o = z.chunk(4, dim=-1)
        kept = F.logsigmoid(f) + m
        m = torch.maximum(kept, log_i)
        i, f = torch.exp(log_i - m), torch.exp(kept - m)
        c, n = f * c + i * torch.tanh(v), f * n + i
        return torch.sigmoid(o) * c / n, c, n, m

    @property
    def values_per_step(self) -> int:
        return 8 * self.hidden_size
