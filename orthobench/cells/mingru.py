"""Minimal gated recurrent unit: a gate and a candidate that do not see the state.

    z_t = sigmoid(U_z x_t + b_z),   h_t = (1 - z_t) * h_{t-1} + z_t * g(U_h x_t + b_h)

g(v) is v + 1/2 for v >= 0 and sigmoid(v) below, which is continuous and keeps the state positive, or the identity.
Feng, Tung, Ahmed, Bengio & Hajimirsadeghi (2024), "Were RNNs All We Needed?", section 3.1 and appendix B; with g = tanh
it is the GILR of Martin & Cundy (2018), "Parallelizing Linear Recurrent Neural Nets Over Sequence Length".
"""

from typing import Any, ClassVar, Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from orthobench.cells.base import Matrices
from orthobench.cells.diagonal_linear import DiagonalLinear

Candidate = Literal["positive", "identity"]


class MinGRU(DiagonalLinear):
    """A GRU whose gates do not see the state (Feng et al. 2024).

    The state is h (N,). The gates are update and candidate, in this order.

    Args:
        candidate: g, `positive` or `identity`.
        **kwargs: see `Cell`.
    """

    gates: tuple[str, ...] = ("z", "h")
    opened: ClassVar[tuple[str, ...]] = ("z",)

    def __init__(self, candidate: Candidate = "positive", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.candidate: Candidate = candidate
        self._make_parameters(orthogonal=(), biased=self.gates)

    def coefficients(self, p: Tensor, W: Matrices) -> tuple[Tensor, Tensor]:
        z, v = p.chunk(2, dim=-1)
        z = torch.sigmoid(z)
        return 1 - z, z * drive(self.candidate, v)


def drive(candidate: Candidate, v: Tensor) -> Tensor:
    """g(v); see above."""
    # a sum of two terms of which one is constant, because choosing entry by entry takes longer
    return v if candidate == "identity" else F.relu(v) + torch.sigmoid(v.clamp(max=0))
