"""Minimal long short-term memory: two gates that do not see the state and add up to one.

    f_t = sigmoid(U_f x_t + b_f),   i_t = sigmoid(U_i x_t + b_i)
    h_t = f_t / (f_t + i_t) * h_{t-1} + i_t / (f_t + i_t) * g(U_h x_t + b_h)

g as in mingru.py. The first share is sigmoid(ln f_t - ln i_t), which is computed without dividing.
Feng, Tung, Ahmed, Bengio & Hajimirsadeghi (2024), "Were RNNs All We Needed?", section 3.2.
"""

from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from orthobench.cells.base import Matrices
from orthobench.cells.diagonal_linear import DiagonalLinear
from orthobench.cells.mingru import Candidate, drive


class MinLSTM(DiagonalLinear):
    """An LSTM whose gates do not see the state (Feng et al. 2024).

    The state is h (N,). The gates are forget, input and candidate, in this order.

    Args:
        candidate: g, `positive` or `identity`.
        **kwargs: see `Cell`.
    """

    gates: tuple[str, ...] = ("f", "i", "h")
    opened: ClassVar[tuple[str, ...]] = ("f", "i")

    def __init__(self, candidate: Candidate = "positive", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.candidate: Candidate = candidate
        self._make_parameters(orthogonal=(), biased=self.gates)

    def coefficients(self, p: Tensor, W: Matrices) -> tuple[Tensor, Tensor]:
        f, i, v = p.chunk(3, dim=-1)
        kept = torch.sigmoid(F.logsigmoid(f) - F.logsigmoid(i))
        return kept, (1 - kept) * drive(self.candidate, v)
