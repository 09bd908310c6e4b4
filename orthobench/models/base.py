"""The base class of all networks, with what the learner, the optimizer and the records need of them."""

from abc import ABC, abstractmethod
from typing import Any

from torch import Tensor, nn

from orthobench.cells.base import State
from orthobench.parametrizations.base import Parametrization


class Network(nn.Module, ABC):
    """A model, called as y, state = network(x, state).

    Attributes:
        cells: the recurrent layers' cells, a ModuleList; empty where there is no recurrence.
        sequential: whether it reads sequences, (B, T, I) or tokens (B, T); otherwise (B, I).
        values_held: numbers per example that a training step keeps in memory, those of the recurrent layers left out.
    """

    cells: Any
    sequential: bool = True
    values_held: int = 0

    @abstractmethod
    def forward(
        self, x: Tensor, state: list[State] | None = None, taps: dict[int, Any] | None = None
    ) -> tuple[Tensor, list[State]]:
        """The outputs and the final state of every recurrent layer."""

    @abstractmethod
    def engines(self) -> list[tuple[str, str]]:
        """(engine, reason) for every recurrent layer; one pair for a network without recurrent layers."""

    def parametrizations(self) -> list[Parametrization]:
        """Every parametrization of the network, constrained or free."""
        return [module for module in self.modules() if isinstance(module, Parametrization)]

    def constrained(self) -> list[Parametrization]:
        """The parametrizations whose matrix stays on a manifold."""
        return [p for p in self.parametrizations() if p.constrained]

    def recurrent_weights(self) -> list[Tensor]:
        """The constrained matrices (N, N), in the order of `constrained`; empty when there is none."""
        return [p() for p in self.constrained()]

    def parameter_counts(self) -> dict[str, int]:
        """Free parameters: `total`, and `recurrent` for the recurrent (or hidden, square) matrices alone."""
        inside = {id(q) for p in self.parametrizations() for q in p.parameters()}
        recurrent = sum(p.parameter_count() for p in self.parametrizations())
        others = sum(q.numel() for q in self.parameters() if id(q) not in inside)
        return {"total": recurrent + others, "recurrent": recurrent}
