"""Elman recurrence behind two trainable scalar gates.

    a_t = act(U x_t + W h_{t-1} + b)
    h_t = alpha a_t + beta h_{t-1},   alpha = sigmoid(alpha_raw),   beta = sigmoid(beta_raw)

SGORNN has an orthogonal W and bounds the second gate, beta <- max(min(beta, 1 - 2 alpha), 0), so that alpha + beta < 1
and a gradient cannot explode; FastRNN has a free W and no bound. The bound is part of the graph: where it is active,
beta_raw gets no gradient and alpha gets one through 1 - 2 alpha.
Taylor-Melanson, Ferreira & Matwin (2021), "SGORNN: Combining Scalar Gates and Orthogonal Constraints in Recurrent
Networks", eq. 1; Kusupati et al. (2019), "FastGRNN: A Fast, Accurate, Stable and Tiny Kilobyte Sized Gated Recurrent
Neural Network".
"""

from typing import Any

import torch
from torch import Tensor, nn

from orthobench.cells.activations import Activation, activate, slopes
from orthobench.cells.base import Cell, Matrices, State
from orthobench.common.schema import NonNegativeFloat


class ScalarGated(Cell):
    """An Elman step with two scalar gates: SGORNN (Taylor-Melanson et al. 2021), FastRNN (Kusupati et al. 2019).

    The state is h (N,). With modReLU the bias acts inside. `matrices()` also returns alpha and beta, so that they are
    computed once per forward pass.

    Args:
        activation: modrelu, relu, leaky_relu, abs or tanh.
        negative_slope: leaky ReLU's factor on negative values.
        bounded: whether beta <= 1 - 2 alpha.
        alpha_raw: its initial value; the SGORNN code has -3.75, with which the bound just holds at beta_raw = 3.
        beta_raw: its initial value.
        **kwargs: see `Cell`.
    """

    def __init__(
        self,
        activation: Activation = "relu",
        negative_slope: NonNegativeFloat = 0.1,
        bounded: bool = True,
        alpha_raw: float = -3.75,
        beta_raw: float = 3.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.activation: Activation = activation
        self.negative_slope, self.bounded = negative_slope, bounded
        inside = self.gates if activation == "modrelu" else ()
        self._make_parameters(orthogonal=self.gates, biased=self.gates, inside=inside)
        self.alpha_raw = nn.Parameter(torch.tensor(alpha_raw))
        self.beta_raw = nn.Parameter(torch.tensor(beta_raw))

    def alpha(self) -> Tensor:
        """The weight of the new state, a scalar."""
        return torch.sigmoid(self.alpha_raw)

    def beta(self) -> Tensor:
        """The weight of the old state, a scalar."""
        beta = torch.sigmoid(self.beta_raw)
        return torch.minimum(beta, 1 - 2 * self.alpha()).clamp_min(0) if self.bounded else beta

    @torch.no_grad()
    def clipped(self) -> Tensor:
        """Return a boolean scalar: true if the bound on beta is active now."""
        exceeds = torch.sigmoid(self.beta_raw) > 1 - 2 * self.alpha()
        return exceeds if self.bounded else torch.zeros_like(exceeds)

    def matrices(self) -> Matrices:
        """W (N, N), alpha and beta."""
        return (*super().matrices(), self.alpha(), self.beta())

    def step(self, p_t: Tensor, state: State, W: Matrices) -> State:
        (h,), (W_NN, alpha, beta) = state, W
        a = activate(self.activation, p_t + h @ W_NN.T, self.b["h"], self.negative_slope)
        return (alpha * a + beta * h,)

    def step_gain(self, W: Matrices) -> tuple[float, float] | None:
        """Both of beta -+ alpha g with g = max |act'| sigma_max(W), at least 0; for SGORNN at most alpha + beta."""
        W_NN, alpha, beta = (w.detach() for w in W)
        reach = float(alpha) * slopes(self.activation, self.negative_slope)[1] * float(torch.linalg.svdvals(W_NN)[0])
        return max(float(beta) - reach, 0.0), float(beta) + reach
