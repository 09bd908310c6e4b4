"""Long short-term memory.

    i, f, o = sigmoid(U x_t + W h_{t-1} + b),   g = tanh(U_g x_t + W_g h_{t-1} + b_g)
    c_t = f * c_{t-1} + i * g,   h_t = o * tanh(c_t)

Hochreiter & Schmidhuber (1997), with the forget gate of Gers et al. (2000). One bias vector per gate, as in TensorFlow.
In the uRNN paper's code (Arjovsky et al. 2016) the output gate also sees c_t, through a dense matrix V_o.
"""

from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from orthobench.cells.base import Cell, Matrices, State
from orthobench.cells.initial import Kernel
from orthobench.parametrizations.initializers import glorot_uniform

LSTMGate = Literal["i", "f", "g", "o"]


class LSTM(Cell):
    """Long short-term memory (Hochreiter & Schmidhuber 1997; Gers et al. 2000).

    The state is h (N,) and c (N,). The gates are input, forget, candidate and output, in this order.

    Args:
        orthogonal: the gates whose recurrent matrix comes from the configured parametrization; the others are free.
        forget_bias: initial value of b_f; null follows `bias_init`.
        peephole: whether o = sigmoid(U_o x_t + W_o h_{t-1} + V_o c_t + b_o), with V_o (N, N) Glorot uniform.
        kernel: see `Cell`.
        **kwargs: see `Cell`.
    """

    gates: tuple[str, ...] = ("i", "f", "g", "o")
    opened: ClassVar[tuple[str, ...]] = ("f", "i", "o")
    states: ClassVar[int] = 2

    def __init__(
        self,
        orthogonal: list[LSTMGate] = ["g"],  # noqa: B006  (read, never changed)
        forget_bias: float | None = 1.0,
        peephole: bool = False,
        kernel: Kernel = "joint",
        **kwargs: Any,
    ) -> None:
        rng, N = kwargs["rng"], kwargs["hidden_size"]
        super().__init__(kernel=kernel, **kwargs)
        self._make_parameters(orthogonal=tuple(orthogonal), biased=self.gates)
        if forget_bias is not None:
            torch.nn.init.constant_(self.b["f"], forget_bias)
        self.own_equations = peephole
        self.V_o = nn.Parameter(glorot_uniform(rng, (N, N))) if peephole else None

    def matrices(self) -> Matrices:
        """The gates' matrices stacked as (4N, N), so that a step needs one product."""
        return (torch.cat(super().matrices()),)

    def step(self, p_t: Tensor, state: State, W: Matrices) -> State:
        h, c = state
        i, f, g, o = (p_t + h @ W[0].T).chunk(4, dim=-1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        if self.V_o is not None:
            o = o + c @ self.V_o.T
        return torch.sigmoid(o) * torch.tanh(c), c

    def torch_kernel(self) -> str | None:
        return None if self.own_equations else "lstm"
