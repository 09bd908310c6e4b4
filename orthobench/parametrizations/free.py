"""No constraint: a dense matrix of n^2 free numbers, as in the RNN, GRU and LSTM baselines."""

from typing import ClassVar

from torch import Tensor, nn

from orthobench.parametrizations.base import Parametrization
from orthobench.parametrizations.initializers import Rng, weight


class Free(Parametrization):
    """A dense matrix of n^2 free numbers.

    Args:
        n: size of the matrix.
        rng: generator for the initial values.
        recurrent_init: scheme, such as `glorot`, `orthogonal`, `identity`, `torch`, `linear` or `shift 1.02`, or a
            bound.
        fan_in: number of inputs for the schemes that use it; n when null.
        fan_out: number of outputs, likewise; larger than n where several gates share one matrix.
    """

    constrained: ClassVar[bool] = False

    def __init__(
        self,
        n: int,
        rng: Rng,
        recurrent_init: str | float = "glorot",
        fan_in: int | None = None,
        fan_out: int | None = None,
    ) -> None:
        super().__init__(n)
        self.weight = nn.Parameter(weight(recurrent_init, rng, (n, n), fan_in, fan_out))

    def forward(self) -> Tensor:
        return self.weight

    def contains(self, W: Tensor, tolerance: float) -> bool:
        return True
