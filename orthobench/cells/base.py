"""What every recurrent cell offers.

Shapes in names: B batch, T time, I input, N hidden, G gates.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from orthobench import initializers
from orthobench.initializers import Rng, uniform, weight
from orthobench.parametrizations.base import Parametrization
from orthobench.parametrizations.free import Free
from orthobench.schema import NonNegativeFloat, Positive, PositiveFloat

State = tuple[Tensor, ...]
Matrices = tuple[Tensor, ...]
MakeRecurrent = Callable[..., Parametrization]
Kernel = Literal["joint", "grouped", "apart"]


class Cell(nn.Module, ABC):
    """A recurrence h_t = step(p_t, state_{t-1}, W) over pre-computed projections p of the input.

    A subclass sets `gates`, calls `_make_parameters` and defines `step`. The recurrent matrices, one per gate, come
    from parametrizations; a gate named in `orthogonal` gets the configured one, every other gate a free matrix.

    Attributes:
        complex_state: whether the hidden state is complex, so that the recurrent matrix may be.
        feature_size: width of `features`.
        own_equations: whether options change the class's equations, so that an engine which was written for the class
            must leave this cell to the plain loop.
        kernels: the gates whose weights TensorFlow 1 keeps in one matrix; empty: all of them.
        inside: the gates whose bias acts inside the activation (modReLU), and is not added to the projection.
        late: the gates whose second bias `step` adds to W h by itself.

    Args:
        input_size: I.
        hidden_size: N.
        rng: generator for the initial values.
        make_recurrent: builds the parametrization of one gate's recurrent matrix, `make_recurrent(constrained=True)`.
        input_init: scheme of the input weights, or a bound for U(-bound, bound).
        bias_init: `zeros`, a number that every added bias starts from, or `torch` for U(-b, b), b = 1 / sqrt(N).
        modrelu_bias: the bound b of U(-b, b) that modReLU's biases start from.
        double_bias: whether an added bias is the sum of two vectors, as PyTorch counts them.
        kernel: what the fans of an initialisation count. `joint`: all gates as one matrix over (x, h), of a single gate
            the two matrices apart; `grouped`: TensorFlow 1's cells, where the free gates of each of `kernels` share a
            matrix over (x, h), and a constrained gate's input weights are a matrix of their own; `apart`: Keras's, one
            matrix over x and one over h.
        fused_orthogonal: whether the free recurrent matrices, stacked, have orthonormal columns at the start (Keras's
            orthogonal draw of one (N, GN) kernel).
        recurrent_gradient_clip: bound on every entry of dL/dW, a recurrent matrix's own gradient (Chu, section 6).
        trainable_h0: whether the initial state is learnt; U(-c, c) with c = sqrt(3 / 2N) at the start, as in the uRNN
            papers' code.
    """

    gates: tuple[str, ...] = ("h",)
    kernels: ClassVar[tuple[tuple[str, ...], ...]] = ()
    states: ClassVar[int] = 1
    complex_state: ClassVar[bool] = False
    own_equations: bool = False
    U: Tensor
    b: nn.ParameterDict
    b_hidden: nn.ParameterDict
    recurrent: nn.ModuleDict
    h0: nn.Parameter | None
    inside: tuple[str, ...] = ()
    late: tuple[str, ...] = ()

    def __init__(
        self,
        input_size: int,
        hidden_size: Positive,
        rng: Rng,
        make_recurrent: MakeRecurrent,
        input_init: str | float = "glorot",
        bias_init: Literal["zeros", "torch"] | float = "zeros",
        modrelu_bias: NonNegativeFloat = 0.0,
        double_bias: bool = False,
        kernel: Kernel = "joint",
        fused_orthogonal: bool = False,
        recurrent_gradient_clip: PositiveFloat | None = None,
        trainable_h0: bool = False,
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size = input_size, hidden_size
        self.feature_size = hidden_size
        self.recurrent_gradient_clip = recurrent_gradient_clip
        self._rng, self._make_recurrent = rng, make_recurrent
        self._input_init, self._bias_init, self._modrelu_bias = input_init, bias_init, modrelu_bias
        self._double_bias, self._kernel, self._fused_orthogonal = double_bias, kernel, fused_orthogonal
        self.h0 = None
        if trainable_h0:
            bound = (3 / (2 * hidden_size)) ** 0.5
            self.h0 = nn.Parameter(uniform(rng, (self.states, hidden_size), bound))

    def _make_parameters(
        self,
        orthogonal: tuple[str, ...],
        biased: tuple[str, ...],
        inside: tuple[str, ...] = (),
        inits: dict[str, str | float] | None = None,
    ) -> None:
        """Input weights, one bias per gate in `biased`, and a recurrent matrix per gate.

        Args:
            orthogonal: the gates with the configured parametrization.
            biased: the gates with a bias.
            inside: those of them whose bias is modReLU's.
            inits: schemes of the input weights of single gates, in place of `input_init`.
        """
        self.inside = inside
        I, N = self.input_size, self.hidden_size
        fans = {gate: self._fans(gate, orthogonal) for gate in self.gates}
        rows = []
        for gate, (group, _, joined) in fans.items():
            scheme = (inits or {}).get(gate, self._input_init)
            rows.append(weight(scheme, self._rng, (N, I), I + N * joined, group * N, units=N))
        self.U = nn.Parameter(torch.cat(rows))
        self.b = nn.ParameterDict({gate: nn.Parameter(self._initial_bias(gate)) for gate in biased})
        doubled = [gate for gate in biased if gate not in inside] if self._double_bias else []
        self.b_hidden = nn.ParameterDict({gate: nn.Parameter(self._initial_bias(gate)) for gate in doubled})
        self.recurrent = nn.ModuleDict()
        for gate, (_, group, joined) in fans.items():
            self.recurrent[gate] = self._make_recurrent(
                constrained=gate in orthogonal, gates=group, input_size=I * joined
            )
        if self._fused_orthogonal:
            self._make_fused_orthogonal()
        self._forget_the_making()

    def _forget_the_making(self) -> None:
        """Drop what was needed to make the parameters."""
        del self._rng, self._make_recurrent, self._input_init, self._bias_init, self._modrelu_bias

    def _fans(self, gate: str, orthogonal: tuple[str, ...]) -> tuple[int, int, bool]:
        """Gates in the matrix of U, gates in the matrix of W, and whether the two are one matrix."""
        G = len(self.gates)
        if self._kernel == "joint":
            return G, G, G > 1
        if self._kernel == "apart":
            return G, sum(other not in orthogonal for other in self.gates) or 1, False
        if gate in orthogonal:
            return 1, 1, False
        kernel = next((kernel for kernel in self.kernels if gate in kernel), self.gates)
        shared = sum(other in self.gates and other not in orthogonal for other in kernel)
        return shared, shared, True

    def _initial_bias(self, gate: str) -> Tensor:
        N = self.hidden_size
        if gate in self.inside:
            return uniform(self._rng, (N,), self._modrelu_bias) if self._modrelu_bias else torch.zeros(N)
        if self._bias_init == "torch":
            return uniform(self._rng, (N,), N**-0.5)
        return torch.full((N,), 0.0 if self._bias_init == "zeros" else float(self._bias_init))

    def _make_fused_orthogonal(self) -> None:
        free = [p for p in self.recurrent.values() if isinstance(p, Free)]
        if free:
            stacked = initializers.orthogonal(self._rng, (len(free) * self.hidden_size, self.hidden_size))
            for p, block in zip(free, stacked.chunk(len(free)), strict=True):
                p.weight.data.copy_(block)

    def matrices(self) -> Matrices:
        """The recurrent matrices, one (N, N) per gate unless a class stacks them: made once per forward pass.

        Autocast does not reach them: rounded, they would leave their manifold.
        """
        with torch.autocast(self.U.device.type, enabled=False):
            return tuple(self._clipped_later(self.recurrent[gate]()) for gate in self.gates)

    def _clipped_later(self, W: Tensor) -> Tensor:
        """W, with its gradient clipped on the way back where that is asked for."""
        bound = self.recurrent_gradient_clip
        if bound is None or not W.requires_grad:
            return W
        W = W.view_as(W)  # a free matrix is a parameter, and a hook on it would stay
        W.register_hook(lambda G: G.clamp(-bound, bound))
        return W

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
        return projection(x, self.U, self.joint_bias())

    def joint_bias(self) -> Tensor | None:
        """What is added to the projection, (G * N,); null when that is nothing."""
        parts = [self._added_bias(gate) for gate in self.gates]
        if all(part is None for part in parts):
            return None
        zero = self.U.new_zeros(self.hidden_size)
        return torch.cat([zero if part is None else part for part in parts])

    def _added_bias(self, gate: str) -> Tensor | None:
        if gate not in self.b or gate in self.inside:
            return None
        second = gate in self.b_hidden and gate not in self.late
        return self.b[gate] + self.b_hidden[gate] if second else self.b[gate]

    def _late_bias(self) -> Tensor | None:
        """The second bias of the gates in `late`, zero for the others, (G * N,); null when there is none."""
        if not any(gate in self.b_hidden for gate in self.late):
            return None
        zero = self.U.new_zeros(self.hidden_size)
        return torch.cat([self.b_hidden[gate] if gate in self.late else zero for gate in self.gates])

    @abstractmethod
    def step(self, p_t: Tensor, state: State, W: Matrices) -> State:
        """One time step.

        Args:
            p_t: projection of the input at this step, (B, G * N).
            state: `states` tensors (B, N), the hidden state first.
            W: what `matrices()` gives.
        """

    @property
    def values_per_step(self) -> int:
        """Numbers that one step works out per sequence, which memory is estimated from."""
        return self.hidden_size * len(self.gates)

    def features(self, h: Tensor) -> Tensor:
        """What a readout and the next layer see of hidden states (..., N): real, (..., feature_size)."""
        return h

    def remark(self) -> str | None:
        """What the cell itself does for speed, for the user to see beside the engine; null when nothing."""
        return None

    def torch_kernel(self) -> str | None:
        """Which of torch's own kernels computes this cell exactly: rnn_tanh, rnn_relu, gru, lstm, or none."""
        return None

    def step_gain(self, W: Matrices) -> tuple[float, float] | None:
        """Bounds on ||(dh_t / dh_{t-1}) v|| / ||v|| over all v, states and inputs; null where none is known."""
        return None


def projection(x: Tensor, U: Tensor, bias: Tensor | None) -> Tensor:
    """U x_t + bias for all time steps, (T, B, M), from x as `Cell.project` takes it, U (M, I) and bias (M,)."""
    if x.is_floating_point():
        return F.linear(x.transpose(0, 1), U, bias)
    table = F.pad(U.T, (0, 0, 0, 1))
    p_TBM = F.embedding(x.T.clamp(max=U.shape[1]), table)
    return p_TBM if bias is None else p_TBM + bias
