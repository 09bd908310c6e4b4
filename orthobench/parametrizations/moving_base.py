"""Maps with a base point or inverse to update after theta has changed, noticed without reading values from a GPU.

What such a map keeps beside theta is believed only while the map itself has written it. What was loaded or averaged
(`AveragedModel`, a mean of state_dicts) is checked once, and mended: the mean of two orthogonal matrices is not one.
"""

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from orthobench.parametrizations import base
from orthobench.parametrizations.hooks import taken
from orthobench.parametrizations.traced import traced

EXACT = 1e-6  # ||W^H W - I||_F up to which a base in double precision is left as it is; 1,000 steps leave 2e-13
SINGULAR = 1e-3


class Settling(base.Parametrization):
    """Calls `settle` after a step, unless theta has not changed since the last call.

    On a GPU torch's count of in-place changes tells whether it has; changes through `theta.data` are not counted.
    Elsewhere, and once after theta was loaded or moved to another device, its values are compared.

    Attributes:
        beside: names of the buffers that are kept beside theta, and that `mend` checks.
        steps: the number of calls of `settle`; part of the state.
        careful: whether `settle` may wait for a GPU to see how far theta has moved, as it does in a layer; a run, whose
            steps are small, does not.
    """

    theta: nn.Parameter

    beside: ClassVar[tuple[str, ...]] = ()
    steps: int = 0
    careful: bool = False
    _known: tuple[int, int] | None = None
    _believed: tuple[tuple[Tensor, int], ...] | None = None

    @abstractmethod
    def settle(self) -> None:
        """Update whatever depends on theta, without gradients."""

    @abstractmethod
    def looks_settled(self) -> bool:
        """Return True if no update is due, judged by theta's values."""

    @abstractmethod
    def mend(self) -> None:
        """Make the buffers named in `beside` fit again where something else has written them, without gradients.

        Raises:
            ValueError: they cannot be mended.
        """

    def is_settled(self) -> bool:
        """Return True if no update is due."""
        known, seen = self._known, self._seen()
        untold = known is None or seen is None or known[0] != seen[0] or not base.reading_waits(self.theta)
        return self.looks_settled() if untold else known == seen

    def look_again(self) -> None:
        """Let the next look be at values, after a change that torch did not count."""
        self._known = None

    @torch.no_grad()
    def after_step(self) -> None:
        self.check()
        if taken(self, "theta"):
            return
        if not self.is_settled():
            self.steps += 1
            self.settle()
            self._believe()
        self._known = self._seen()

    @torch.no_grad()
    def check(self) -> None:
        """Let `mend` look at what is kept beside theta, if anything else has written it since the last look.

        Raises:
            ValueError: it cannot be mended, or values cannot be read because something traces or exports.
        """
        if torch.compiler.is_dynamo_compiling() or self.theta.is_meta:
            return
        if not traced(self.theta):
            if self._beside() is not None and not self._is_believed():
                self.mend()
                self._believe()
        elif self._believed is None or any(_changes(t) != n for t, n in self._believed):
            name = type(self).__name__
            raise ValueError(
                f"what {name} keeps beside its parameters was loaded, averaged or moved, and cannot be checked while "
                "something traces or exports: call layer.after_step() before."
            )

    def get_extra_state(self) -> Tensor:
        """The number of calls of `settle`, for `state_dict`."""
        return torch.tensor(self.steps)

    def set_extra_state(self, state: Tensor) -> None:
        """See `get_extra_state`."""
        self.steps = int(state)
        self.look_again()

    def begin_as(self, new: Any) -> None:
        """Believe the values of a new map, which this one has been given, and count its steps."""
        self.set_extra_state(new.get_extra_state())
        self._believe()

    def _believe(self) -> None:
        kept = self._beside()
        self._believed = None if kept is None else tuple((t, _changes(t)) for t in kept)

    def _is_believed(self) -> bool:
        kept, known = self._beside(), self._believed
        if kept is None or known is None:
            return False
        return all(t is own and _changes(t) == n for t, (own, n) in zip(kept, known, strict=True))

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        believed, before = self._is_believed(), self.theta.dtype
        super()._apply(fn, recurse)
        if believed:
            self._believe()
            if self.beside and before.itemsize < self.theta.dtype.itemsize and not self.theta.is_meta:
                self.mend()  # or else numbers that were rounded to half precision would stay so
        return self

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_believed": self._is_believed()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._believed = None
        if state.get("_believed"):
            self._believe()

    def _seen(self) -> tuple[int, int] | None:
        """Place of theta and its number of changes; None for one that is not stored, as in `torch.func`."""
        theta = self.theta
        if not isinstance(theta, nn.Parameter) or theta.is_meta:
            return None
        return theta.data_ptr(), _changes(theta)

    def _beside(self) -> list[Tensor] | None:
        """The buffers named in `beside`; None where they have no values, or values that may not be read."""
        kept = [self.get_buffer(name) for name in self.beside]
        return None if any(t.is_meta or base.wrapped(t) for t in kept) else kept

    def _refuse_taken(self) -> None:
        """Refuse a theta that is computed from other parameters, where a step sets theta to zero.

        Raises:
            ValueError: theta is pruned, normalised, or has a parametrization of torch.
        """
        if taken(self, "theta"):
            raise ValueError(
                f"{type(self).__name__} sets theta to zero after every step, and here theta is computed by "
                "torch.nn.utils (prune, weight_norm, spectral_norm or parametrize): apply that to the cell's U or to a "
                "bias, or choose another matrix, such as recurrent='scaled_cayley'."
            )


def _changes(t: Tensor) -> int:
    """Number of times that a tensor was changed in place; torch does not count that in inference mode."""
    return -1 if t.is_inference() else t._version


@torch.inference_mode(False)
@torch.no_grad()
def mended(W: Tensor, name: str) -> Tensor:
    """W where it is orthogonal or unitary, or else the matrix nearest to it that is.

    A matrix with numbers that are not finite is left as it is. What is returned can be trained with, though W or the
    call be of inference mode.

    Args:
        W: (n, n), in double precision.
        name: what W is, for the message.

    Raises:
        ValueError: W is nearly singular, so that the nearest such matrix is not determined.
    """
    off = float(base.deviation(W))
    if not EXACT < off < math.inf:
        return W.clone() if W.is_inference() else W
    U, sigma, Vh = torch.linalg.svd(W)
    if float(sigma[-1]) < SINGULAR:
        raise ValueError(
            f"{name} is no orthogonal or unitary matrix, and too far from one to be made one (its least singular value "
            f"is {float(sigma[-1]):.1e}): load weights of one run, or average weights that are nearer to each other."
        )
    return U @ Vh


def polar(W: Tensor) -> Tensor:
    """The unitary matrix nearest to W."""
    U, _, Vh = torch.linalg.svd(W)
    return U @ Vh
