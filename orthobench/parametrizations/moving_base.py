"""Maps with a base point or inverse to update after theta has changed, noticed without reading values from a GPU."""

from abc import abstractmethod

import torch
from torch import Tensor, nn

from orthobench.parametrizations import base


class Settling(base.Parametrization):
    """Calls `settle` after a step, unless theta has not changed since the last call.

    On a GPU torch's count of in-place changes tells whether it has; changes through `theta.data` are not counted.
    Elsewhere, and once after theta was loaded or moved to another device, its values are compared.

    Attributes:
        steps: the number of calls of `settle`; part of the state.
    """

    theta: nn.Parameter

    steps: int = 0
    _known: tuple[int, int] | None = None

    @abstractmethod
    def settle(self) -> None:
        """Update whatever depends on theta, without gradients."""

    @abstractmethod
    def looks_settled(self) -> bool:
        """Whether no update is due, judged by theta's values."""

    def is_settled(self) -> bool:
        """Whether no update is due."""
        known, seen = self._known, self._seen()
        untold = known is None or known[0] != seen[0] or not base.reading_waits(self.theta)
        return self.looks_settled() if untold else known == seen

    @torch.no_grad()
    def after_step(self) -> None:
        if not self.is_settled():
            self.steps += 1
            self.settle()
        self._known = self._seen()

    def get_extra_state(self) -> Tensor:
        """The number of calls of `settle`, for `state_dict`."""
        return torch.tensor(self.steps)

    def set_extra_state(self, state: Tensor) -> None:
        """See `get_extra_state`."""
        self.steps, self._known = int(state), None

    def _seen(self) -> tuple[int, int]:
        return self.theta.data_ptr(), -1 if self.theta.is_inference() else self.theta._version
