"""Maps with something to move once theta has moved, which is known without reading a value back from a GPU."""

from abc import abstractmethod

import torch
from torch import Tensor, nn

from orthobench.parametrizations import base


class Settling(base.Parametrization):
    """Does in `settle` what follows a step, and nothing while theta is as the last `settle` left it.

    On a GPU torch's count of changes in place tells that (of changes through `theta.data` it cannot). Elsewhere, and
    once after theta was loaded or moved, its values are looked at.

    Attributes:
        steps: how many times it has settled; part of the state.
    """

    theta: nn.Parameter

    steps: int = 0
    _known: tuple[int, int] | None = None

    @abstractmethod
    def settle(self) -> None:
        """Follow theta, without gradients."""

    @abstractmethod
    def looks_settled(self) -> bool:
        """Whether nothing is due, from theta's values."""

    def is_settled(self) -> bool:
        """Whether nothing is due."""
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
        """Torch's name for what a state has besides tensors."""
        return torch.tensor(self.steps)

    def set_extra_state(self, state: Tensor) -> None:
        """See `get_extra_state`."""
        self.steps, self._known = int(state), None

    def _seen(self) -> tuple[int, int]:
        return self.theta.data_ptr(), -1 if self.theta.is_inference() else self.theta._version
