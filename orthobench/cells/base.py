"""What every recurrent cell offers.

Shapes in names: B batch, T time, I input, N hidden, G gates.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from orthobench.initializers import Rng, uniform, weight
from orthobench.parametrizations.base import Parametrization

State = tuple[Tensor, ...]
Matrices = tuple[Tensor, ...]
MakeRecurrent = Callable[..., Parametrization]


class Cell(nn.Module, ABC):
    """A recurrence h_t = step(p_t, state_{t-1}, W) over pre-computed projections p of the input.

    A subclass sets `gates`, calls `_make_parameters` and defines `step`. The recurrent matrices, one per gate, come from
    parametrizations; a gate named in `orthogonal` gets the configured one, every other gate a free matrix.

    Args:
        input_size: I.
        hidden_size: N.
        rng: generator for the initial values.
        make_recurrent: builds the parametrization of one gate's recurrent matrix, `make_recurrent(constrained=True)`.
        input_init: scheme of the input weights, or a bound for U(-bound, bound).
        trainable_h0: whether the initial state is learnt; U(-c, c) with c = sqrt(3 / 2N) at the start, as in the uRNN
            papers' code.
    """

    gates: ClassVar[tuple[str, ...]] = ("h",)
    states: ClassVar[int] = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        rng: Rng,
        make_recurrent: MakeRecurrent,
        input_init: str | float = "glorot",
        trainable_h0: bool = False,
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size = input_size, hidden_size
        self._rng, self._make_recurrent, self._input_init = rng, make_recurrent, input_init
        self.h0 = None
        if trainable_h0:
            bound = (3 / (2 * hidden_size)) ** 0.5
            self.h0 = nn.Parameter(uniform(rng, (self.states, hidden_size), bound))

    def _make_parameters(self, orthogonal: tuple[str, ...], biased: tuple[str, ...]) -> None:
        """Input weights, one bias per gate in `biased`, and a recurrent matrix per gate."""
        G, I, N = len(self.gates), self.input_size, self.hidden_size
        fans = {"fan_in": I + N, "fan_out": G * N} if G > 1 else {"fan_in": I, "fan_out": N}
        self.U = nn.Parameter(weight(self._input_init, self._rng, (G * N, I), **fans))
        self.b = nn.ParameterDict({gate: nn.Parameter(torch.zeros(N)) for gate in biased})
        self.recurrent = nn.ModuleDict(
            {gate: self._make_recurrent(constrained=gate in orthogonal, gates=G, input_size=I) for gate in self.gates}
        )
        del self._rng, self._make_recurrent, self._input_init

    def matrices(self) -> Matrices:
        """The recurrent matrices, one (N, N) per gate: materialised once per forward pass."""
        return tuple(self.recurrent[gate]() for gate in self.gates)

    def initial_state(self, batch_size: int) -> State:
        """The state before the first step, `states` tensors (B, N), h first."""
        if self.h0 is not None:
            return tuple(row.expand(batch_size, -1) for row in self.h0)
        return tuple(self.U.new_zeros(batch_size, self.hidden_size) for _ in range(self.states))

    def project(self, x: Tensor) -> Tensor:
        """Everything that does not depend on h, for all time steps at once.

        Args:
            x: inputs (B, T, I), or tokens (B, T) that stand for one-hot vectors of width I (a token I or larger is the
                zero vector).

        Returns:
            (T, B, G * N).
        """
        bias = self._joint_bias()
        if x.is_floating_point():
            return F.linear(x.transpose(0, 1), self.U, bias)
        table = F.pad(self.U.T, (0, 0, 0, 1))
        p_TBN = F.embedding(x.T.clamp(max=self.input_size), table)
        return p_TBN if bias is None else p_TBN + bias

    def _joint_bias(self) -> Tensor | None:
        if not self.b:
            return None
        zero = self.U.new_zeros(self.hidden_size)
        return torch.cat([self.b[gate] if gate in self.b else zero for gate in self.gates])

    @abstractmethod
    def step(self, p_t: Tensor, state: State, W: Matrices) -> State:
        """One time step.

        Args:
            p_t: projection of the input at this step, (B, G * N).
            state: `states` tensors (B, N), the hidden state first.
            W: one matrix per gate, from `matrices()`.
        """

    def torch_kernel(self) -> str | None:
        """Which of torch's own kernels computes this cell exactly: rnn_tanh, rnn_relu, gru, lstm, or none."""
        return None
