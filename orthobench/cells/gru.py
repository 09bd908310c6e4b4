"""Gated recurrent unit, with any subset of its recurrent matrices constrained.

    r_t = sigmoid(U_r x_t + W_r h_{t-1} + b_r)
    u_t = sigmoid(U_u x_t + W_u h_{t-1} + b_u)
    c_t = act(U_c x_t + W_c (r_t * h_{t-1}) + b_c)          reset: before
    c_t = act(U_c x_t + r_t * (W_c h_{t-1}) + b_c)          reset: after
    c_t = act(U_c x_t + W_c h_{t-1} + b_c)                  reset: none
    h_t = u_t * h_{t-1} + (1 - u_t) * c_t

u = 1 keeps the old state. Cho et al. (2014) put the reset before the product, PyTorch's nn.GRU after it; Chu's uGRU
prints equations in which r acts on nothing, and keeps PyTorch's code. With act = modReLU, b_c is the bias inside it, as
in NC-GRU (Mucllari et al. 2022, eq. 19). PyTorch's second bias of the candidate is multiplied by r as W_c h is.
"""

from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from orthobench.cells.activations import Activation, activate
from orthobench.cells.base import Cell, Matrices, State
from orthobench.cells.initial import Kernel
from orthobench.common.schema import NonNegativeFloat
from orthobench.errors import ConfigError
from orthobench.parametrizations.initializers import tensor

GRUGate = Literal["r", "u", "c"]


class GRU(Cell):
    """Gated recurrent unit (Cho et al. 2014); NC-GRU with modReLU (Mucllari et al. 2022, eq. 19).

    The state is h (N,). The gates are reset, update and candidate, in this order; with `reset=none` there is no reset
    gate.

    Args:
        orthogonal: the gates whose recurrent matrix comes from the configured parametrization; the others are free.
        reset: whether r acts before or after the product with W_c; `none` leaves r and its parameters out.
        activation: the candidate's activation.
        negative_slope: leaky ReLU's factor on negative values.
        gate_bias: initial value of b_r and b_u, or `normal` for draws from N(0, 1); null follows `bias_init`.
        candidate_init: scheme of U_c, or a bound; null follows `input_init`.
        kernel: see `Cell`.
        **kwargs: see `Cell`.

    Raises:
        ConfigError: `orthogonal` names r, which `reset` leaves out.
    """

    gates: tuple[str, ...] = ("r", "u", "c")
    opened: ClassVar[tuple[str, ...]] = ("u", "r")
    kernels: ClassVar[tuple[tuple[str, ...], ...]] = (("r", "u"), ("c",))

    def __init__(
        self,
        orthogonal: list[GRUGate] = ["c"],  # noqa: B006  (read, never changed)
        reset: Literal["before", "after", "none"] = "after",
        activation: Activation = "tanh",
        negative_slope: NonNegativeFloat = 0.1,
        gate_bias: Literal["normal"] | float | None = None,
        candidate_init: str | float | None = None,
        kernel: Kernel = "joint",
        **kwargs: Any,
    ) -> None:
        rng = kwargs["rng"]
        super().__init__(kernel=kernel, **kwargs)
        self.activation: Activation = activation
        self.reset, self.negative_slope = reset, negative_slope
        if reset == "none":
            self.gates = ("u", "c")
            if "r" in orthogonal:
                raise ConfigError("model.orthogonal names r, which model.reset=none leaves out: leave it out too.")
        inside = ("c",) if activation == "modrelu" else ()
        inits = {} if candidate_init is None else {"c": candidate_init}
        self._make_parameters(orthogonal=tuple(orthogonal), biased=self.gates, inside=inside, inits=inits)
        self.late = ("c",) if reset == "after" else ()
        for gate in self.gates[:-1]:
            if gate_bias == "normal":
                self.b[gate].data.copy_(tensor(rng.normal(size=self.hidden_size)))
            elif gate_bias is not None:
                torch.nn.init.constant_(self.b[gate], gate_bias)

    def step(self, p_t: Tensor, state: State, W: Matrices) -> State:
        (h,) = state
        p = p_t.chunk(len(self.gates), dim=-1)
        u = torch.sigmoid(p[-2] + h @ W[-2].T)
        c = activate(self.activation, p[-1] + self._recall(p, h, W), self.b["c"], self.negative_slope)
        return (u * h + (1 - u) * c,)

    def _recall(self, p: tuple[Tensor, ...], h: Tensor, W: Matrices) -> Tensor:
        """The recurrent term of the candidate, (B, N): W_c (r * h), r * (W_c h + b_k) or W_c h, as `reset` says."""
        if self.reset == "none":
            return h @ W[-1].T
        r = torch.sigmoid(p[0] + h @ W[0].T)
        if self.reset == "before":
            return (r * h) @ W[-1].T
        recalled = h @ W[-1].T
        return r * (recalled + self.b_hidden["c"] if "c" in self.b_hidden else recalled)

    def torch_kernel(self) -> str | None:
        return "gru" if self.reset == "after" and self.activation == "tanh" else None
