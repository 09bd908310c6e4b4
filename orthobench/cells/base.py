"""The base class of all recurrent cells.

Shapes in names: B batch, T time, I input, N hidden, G gates.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from orthobench.cells.initial import Initial, Kernel, MakeRecurrent
from orthobench.cells.projection import projection
from orthobench.common.schema import NonNegativeFloat, Positive, PositiveFloat
from orthobench.errors import ConfigError
from orthobench.parametrizations.accumulated import Accumulated
from orthobench.parametrizations.base import inside_and_outside
from orthobench.parametrizations.hooks import refresh
from orthobench.parametrizations.initializers import Rng, uniform
from orthobench.parametrizations.traced import in_full_precision

State = tuple[Tensor, ...]
Matrices = tuple[Tensor, ...]


class Cell(nn.Module, ABC):
    """A recurrence h_t = step(p_t, state_{t-1}, W) over pre-computed projections p of the input.

    A subclass sets `gates`, calls `_make_parameters` and defines `step`. The recurrent matrices, one per gate unless
    `matrix_names` says otherwise, come from parametrizations: a matrix named in `orthogonal` has the configured
    parametrization, every other matrix is free.

    Attributes:
        gates: the names of the blocks of N numbers that `project` returns.
        matrix_names: the names of the recurrent matrices, in the order in which `step` gets them; their number may
            differ from that of the gates. None means one per gate.
        states: how many states (B, N) there are; for other shapes a class redefines `state_shapes`.
        returns_output: whether `step` returns (output, state). A readout and the next layer then see the output
            (B, feature_size), and only the final state is kept.
        initial: draws the initial values.
        complex_state: whether the hidden state is complex, so that the recurrent matrix may be.
        feature_size: width of `features`.
        own_equations: whether this cell's options change the equations of its class, so that an engine written for the
            class must leave the cell to the plain loop.
        kernels: groups of gates whose weights TensorFlow 1 keeps in one matrix; empty means one group of all gates.
        inside: the gates whose bias acts inside the activation (modReLU) and is not added to the projection.
        late: the gates whose second bias is added to W h in `step`.
        opened: the gates of which a step takes a sigmoid, in that order, for who looks at them; further ones, as of an
            activation, are left out.

    Args:
        input_size: I, the width of an input.
        hidden_size: N, the number of units.
        rng: generator for the initial values.
        make_recurrent: builds the parametrization of one gate's recurrent matrix, `make_recurrent(constrained=True)`.
        input_init: scheme of the input weights, or a bound for U(-bound, bound).
        bias_init: `zeros`, a number that every added bias starts from, or U(-b, b): `torch` has b = 1 / sqrt(N), and
            `linear`, nn.Linear's rule, b = 1 / sqrt(fan-in of the gate).
        modrelu_bias: the bound b of U(-b, b) that modReLU's biases start from.
        double_bias: whether an added bias is the sum of two vectors, as PyTorch counts them.
        kernel: which matrix the fans of an initialisation belong to. `joint`: one matrix over (x, h) for all gates, but
            one over x and one over h where there is a single gate; `grouped`: as in TensorFlow 1's cells, the free
            gates of each group in `kernels` share a matrix over (x, h), and the input weights of a constrained gate are
            a matrix of their own; `apart`: as in Keras, one matrix over x and one over h.
        fused_orthogonal: whether the free recurrent matrices, stacked, have orthonormal columns at the start (Keras's
            orthogonal draw of one (N, GN) kernel).
        recurrent_gradient_clip: bound on every entry of dL/dW, the gradient of a recurrent matrix itself rather than of
            its parameters (Chu, section 6).
        trainable_h0: whether the initial state is learnt; U(-c, c) with c = sqrt(3 / 2N) at the start, as in the uRNN
            papers' code.

    Raises:
        ConfigError: `trainable_h0` with states of other shapes than (N,).
    """

    gates: tuple[str, ...] = ("h",)
    matrix_names: tuple[str, ...] | None = None
    kernels: ClassVar[tuple[tuple[str, ...], ...]] = ()
    opened: ClassVar[tuple[str, ...]] = ()
    states: ClassVar[int] = 1
    complex_state: ClassVar[bool] = False
    returns_output: bool = False
    own_equations: bool = False
    U: Tensor
    b: nn.ParameterDict
    b_hidden: nn.ParameterDict
    recurrent: nn.ModuleDict
    clips: nn.ModuleDict
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
        bias_init: Literal["zeros", "torch", "linear"] | float = "zeros",
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
        self.initial = Initial(
            hidden_size,
            rng,
            make_recurrent,
            input_init,
            bias_init,
            modrelu_bias,
            double_bias,
            kernel,
            fused_orthogonal,
        )
        self.h0 = None
        if trainable_h0:
            if type(self).state_shapes is not Cell.state_shapes:
                raise ConfigError(
                    f"model.trainable_h0=true does not apply to {type(self).__name__}, whose states have other shapes "
                    "than (N,): use model.trainable_h0=false."
                )
            bound = (3 / (2 * hidden_size)) ** 0.5
            self.h0 = nn.Parameter(uniform(rng, (self.states, hidden_size), bound))

    def _make_parameters(
        self,
        orthogonal: tuple[str, ...],
        biased: tuple[str, ...],
        inside: tuple[str, ...] = (),
        inits: dict[str, str | float] | None = None,
        fan_in: int | None = None,
    ) -> None:
        """Input weights, one bias per gate in `biased`, and the recurrent matrices.

        Args:
            orthogonal: the recurrent matrices with the configured parametrization.
            biased: the gates with a bias.
            inside: the gates whose bias is modReLU's.
            inits: schemes of the input weights of single gates, in place of `input_init`.
            fan_in: columns of the one matrix over all that a gate reads, where it is published as such; null: by
                `kernel`.

        Raises:
            ConfigError: a setting of the recurrent matrices was given to a cell that has none.
            ValueError: `orthogonal` names a matrix that does not exist.
        """
        self.inside = inside
        I, N, draws = self.input_size, self.hidden_size, self.initial
        fans = {gate: draws.fans(gate, self.gates, orthogonal, self.kernels) for gate in self.gates}
        names = self._matrix_names()
        widths = {gate: fan_in or I + N * (joined and bool(names)) for gate, (_, _, joined) in fans.items()}
        rows = []
        for gate, (group, _, _) in fans.items():
            rows.append(draws.input_weight((N, I), widths[gate], group * N, (inits or {}).get(gate)))
        self.U = nn.Parameter(torch.cat(rows))
        self.b = nn.ParameterDict({gate: nn.Parameter(draws.bias(gate in inside, widths[gate])) for gate in biased})
        doubled = [gate for gate in biased if gate not in inside] if draws.double_bias else []
        self.b_hidden = nn.ParameterDict({gate: nn.Parameter(draws.bias(False, widths[gate])) for gate in doubled})
        self.recurrent, self.clips = nn.ModuleDict(), nn.ModuleDict()
        bound = self.recurrent_gradient_clip
        self._refuse_settings_of_matrices(names, orthogonal)
        for name in names:
            _, group, joined = fans[name] if self.matrix_names is None else (1, 1, False)
            if bound is not None:
                self.clips[name] = Accumulated(partial(torch.clamp, min=-bound, max=bound))
            self.recurrent[name] = draws.make_recurrent(
                constrained=name in orthogonal, gates=group, input_size=fan_in - N if fan_in else I * joined
            )
        if draws.fused_orthogonal:
            draws.orthogonal_columns(self.recurrent.values())

    def _matrix_names(self) -> tuple[str, ...]:
        return self.gates if self.matrix_names is None else self.matrix_names

    def _refuse_settings_of_matrices(self, names: tuple[str, ...], orthogonal: tuple[str, ...]) -> None:
        settings = {
            "recurrent_gradient_clip": self.recurrent_gradient_clip is not None,
            "fused_orthogonal": self.initial.fused_orthogonal,
        }
        for key in [key for key, given in settings.items() if given and not names]:
            raise ConfigError(
                f"model.{key} does not apply to {type(self).__name__}, which has no recurrent matrix: leave it out."
            )
        if not set(orthogonal) <= set(names):
            raise ValueError(f"orthogonal={orthogonal} names none of the recurrent matrices, which are {names}.")

    def forward(self, x: Tensor, h0: State | None = None, *, run: Callable[..., Any]) -> tuple[Tensor, State]:
        """Go over sequences x (B, T, I) from `h0` by `run(cell, x, h0)`; see `orthobench.recurrence`, which calls the
        cell so that its hooks act.
        """
        for part in self.children():
            refresh(part)
        return run(self, x, h0)

    def matrices(self) -> Matrices:
        """The recurrent matrices, (N, N) each unless a class stacks them; computed once per forward pass.

        Autocast is off here, because a rounded matrix would leave its manifold.

        Raises:
            ValueError: a parametrization returns a matrix in another dtype than that of the parameters.
        """
        with in_full_precision(self.U.device.type):
            return tuple(self._clipped_later(name, self._matrix(name)) for name in self._matrix_names())

    def _matrix(self, name: str) -> Tensor:
        W = self.recurrent[name]()
        if W.dtype != self.U.dtype:
            raise ValueError(
                f"{type(self.recurrent[name]).__name__} returns a matrix in {W.dtype}, and the other parameters are in "
                f"{self.U.dtype}: a parametrization returns its matrix in the type of its own parameters."
            )
        return W

    def _clipped_later(self, name: str, W: Tensor) -> Tensor:
        """W, with its gradient clipped in the backward pass where `recurrent_gradient_clip` is set."""
        if self.recurrent_gradient_clip is None or not W.requires_grad:
            return W
        W = W.view_as(W)  # a free matrix is a parameter, and a hook on it would stay
        W.register_hook(self.clips[name])
        return W

    def initial_state(self, batch_size: int) -> State:
        """The state before the first step of `batch_size` sequences, tensors (B, ...) of `state_shapes`, h first."""
        if self.h0 is not None:
            return tuple(row.expand(batch_size, -1) for row in self.h0)
        dtype = self.U.dtype.to_complex() if self.complex_state else self.U.dtype
        return tuple(self.U.new_zeros(batch_size, *shape, dtype=dtype) for shape in self.state_shapes())

    def state_shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of one sequence's states, the hidden state first."""
        return ((self.hidden_size,),) * self.states

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
        """The bias that is added to the projection, (G * N,); None when there is none."""
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
        """The second bias of the gates in `late`, zero for the others, (G * N,); None when there is none."""
        if not any(gate in self.b_hidden for gate in self.late):
            return None
        zero = self.U.new_zeros(self.hidden_size)
        return torch.cat([self.b_hidden[gate] if gate in self.late else zero for gate in self.gates])

    @abstractmethod
    def step(self, p_t: Tensor, state: State, W: Matrices) -> Any:
        """Compute one time step.

        Args:
            p_t: projection of the input at this step, (B, G * N).
            state: tensors (B, ...) of `state_shapes`, the hidden state first.
            W: the result of `matrices()`, (N, N) each unless the class stacks them.

        Returns:
            The new state; with `returns_output`, the output of this step (B, feature_size) and the new state.
        """

    def advance(self, p_t: Tensor, state: State, W: Matrices) -> tuple[Tensor, State]:
        """Compute one step: the hidden state (B, N), or with `returns_output` the output; and the state. See `step`."""
        made = self.step(p_t, state, W)
        return made if self.returns_output else (made[0], made)

    @property
    def values_per_step(self) -> int:
        """Numbers that one step computes per sequence, its states at least; the estimate of memory uses it."""
        return max(self.hidden_size * len(self.gates), self._state_numbers())

    def state_bytes(self) -> int:
        """Bytes of one sequence's states between two steps."""
        return self._state_numbers() * self.U.element_size()

    def _state_numbers(self) -> int:
        """Real numbers of one sequence's states."""
        return sum(math.prod(shape) for shape in self.state_shapes()) * (2 if self.complex_state else 1)

    def multiply_adds(self, tokens: bool = False) -> int:
        """Real multiply-adds of one step of one sequence; elementwise operations are left out.

        Every parametrized matrix acts once, and so does every other parameter with two dimensions or more. A cell that
        uses one of them otherwise, or multiplies by what is no parameter, redefines this. Where the state is
        complex, a multiply-add of a parametrized matrix is complex and counts as four.

        Args:
            tokens: whether the inputs are tokens, whose product with U is a row of it and costs nothing.
        """
        maps, others = inside_and_outside(self)
        weights = [p for p in others if p.dim() > 1 and p is not self.h0 and not (tokens and p is self.U)]
        products = sum(W.multiply_adds() for W in maps) * (4 if self.complex_state else 1)
        return products + sum(p.numel() for p in weights)

    def features(self, h: Tensor) -> Tensor:
        """The real features (..., feature_size) that a readout and the next layer get from hidden states h (..., N).

        With `returns_output` the outputs of the steps are passed through here instead of hidden states.
        """
        return h

    def learning_rate_scales(self) -> dict[str, float]:
        """Factors on the learning rate, by parameter name, of parameters that learn slower and have no weight decay."""
        return {}

    def remark(self) -> str | None:
        """Sentence about what the cell does for speed, shown beside the engine; None if it does nothing."""
        return None

    def torch_kernel(self) -> str | None:
        """The name of torch's own kernel that computes this cell exactly (rnn_tanh, rnn_relu, gru, lstm), or None."""
        return None

    def step_gain(self, W: Matrices) -> tuple[float, float] | None:
        """Lower and upper bound on ||(dh_t / dh_{t-1}) v|| / ||v|| over all v, states and inputs; None if unknown.

        Args:
            W: the result of `matrices()`, (N, N) each unless the class stacks them.
        """
        return None
