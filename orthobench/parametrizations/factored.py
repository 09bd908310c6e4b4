"""Matrices that are products of cheap factors, so that W h costs less than a dense product."""

from abc import abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from orthobench.parametrizations.base import Parametrization

Factors = tuple[Tensor, ...]


class Factored(Parametrization):
    """A map whose W can be applied factor by factor; the dense W is the same product applied to the identity.

    Attributes:
        stepwise: whether a loop over time is faster with the factors than with the dense matrix at this size. A cell
            that can apply its matrix by `multiply` may use it; every other cell gets the dense W.
        kept: memory that autograd keeps for one `multiply`, as a multiple of that for one real step.
    """

    stepwise: bool = False
    kept: int = 2

    @abstractmethod
    def factors(self) -> Factors:
        """The tensors that `multiply` needs, in double precision, computed once per forward pass."""

    @abstractmethod
    def multiply(self, h: Tensor, factors: Sequence[Tensor]) -> Tensor:
        """W h for every row h of a (B, n) tensor of the factors' type."""

    def forward(self) -> Tensor:
        factors = self.factors()
        eye = torch.eye(self.n, dtype=factors[0].dtype, device=factors[0].device)
        W = self.multiply(eye, factors).T
        real = next(self.parameters()).dtype
        return W.to(real.to_complex() if W.is_complex() else real)
