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
        careful: whether `settle` may wait for a GPU to see how far theta has moved, as it does in a layer; a run, whose
            steps are small, does not.
    """

    theta: nn.Parameter

    steps: int = 0
    careful: bool = False
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
        untold = known is None or seen is None or known[0] != seen[0] or not base.reading_waits(self.theta)
        return self.looks_settled() if untold else known == seen

    def look_again(self) -> None:
        """Let the next look be at values, after a change that torch did not count."""
        self._known = None

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
        self.steps = int(state)
        self.look_again()

    def _seen(self) -> tuple[int, int] | None:
        """Where theta is and how often it has changed; null for one that is not stored, as in `torch.func`."""
        theta = self.theta
        if not isinstance(theta, nn.Parameter):
            return None
        return theta.data_ptr(), -1 if theta.is_inference() else theta._version
