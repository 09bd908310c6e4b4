"""Gated recurrent unit, with any subset of its recurrent matrices constrained.

    r_t = sigmoid(U_r x_t + W_r h_{t-1} + b_r)
    u_t = sigmoid(U_u x_t + W_u h_{t-1} + b_u)
    c_t = act(U_c x_t + W_c (r_t * h_{t-1}) + b_c)          reset: before
    c_t = act(U_c x_t + r_t * (W_c h_{t-1}) + b_c)          reset: after
    h_t = u_t * h_{t-1} + (1 - u_t) * c_t

u = 1 keeps the old state. Cho et al. (2014) put the reset before the product, PyTorch's nn.GRU after it. With act =
modReLU, b_c is the bias inside it, as in NC-GRU (Mucllari et al. 2022, eq. 19).
"""

from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from orthobench.cells.activations import Activation, activate
from orthobench.cells.base import Cell, Matrices, State
from orthobench.schema import NonNegativeFloat

Gate = Literal["r", "u", "c"]


class GRU(Cell):
    """Reset, update and candidate, in this order.

    Args:
        orthogonal: the gates whose recurrent matrix comes from the configured parametrization; the others are free.
        reset: whether r acts before or after the product with W_c.
        activation: of the candidate.
        negative_slope: leaky ReLU's factor on negative values.
        gate_bias: initial value of b_r and b_u.
        **kwargs: see `Cell`.
    """

    gates: ClassVar[tuple[str, ...]] = ("r", "u", "c")

    def __init__(
        self,
        orthogonal: list[Gate] = ["c"],  # noqa: B006  (read, never changed)
        reset: Literal["before", "after"] = "after",
        activation: Activation = "tanh",
        negative_slope: NonNegativeFloat = 0.1,
        gate_bias: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.reset, self.activation, self.negative_slope = reset, activation, negative_slope
        self._make_parameters(orthogonal=tuple(orthogonal), biased=self.gates)
        for gate in ("r", "u"):
            torch.nn.init.constant_(self.b[gate], gate_bias)

    def _joint_bias(self) -> Tensor | None:
        inside = self.activation == "modrelu"
        b_c = torch.zeros_like(self.b["c"]) if inside else self.b["c"]
        return torch.cat([self.b["r"], self.b["u"], b_c])

    def step(self, p_t: Tensor, state: State, W: Matrices) -> State:
        (h,) = state
        p_r, p_u, p_c = p_t.chunk(3, dim=-1)
        r = torch.sigmoid(p_r + h @ W[0].T)
        u = torch.sigmoid(p_u + h @ W[1].T)
        recalled = (r * h) @ W[2].T if self.reset == "before" else r * (h @ W[2].T)
        c = activate(self.activation, p_c + recalled, self.b["c"], self.negative_slope)
        return (u * h + (1 - u) * c,)

    def torch_kernel(self) -> str | None:
        return "gru" if self.reset == "after" and self.activation == "tanh" else None
