"""Tasks whose lengths or delays are drawn for every sequence by itself.

Sequence i of a pass takes `width` numbers from U[0, 1) at place i of a stream that is seeded by (seed, split, epoch)
and the range: it does not depend on the size of a batch. Sequences are padded with token 0 to the longest of the
range, so that all batches have one shape; a mask marks the outputs that count. Every sequence counts once, however
many of its outputs do. Batches that follow each other are drawn together, up to TOGETHER steps at once.
"""

from abc import abstractmethod
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from orthobench.tasks.base import SPLITS, Batch, Split
from orthobench.tasks.cross_entropy import cross_entropy
from orthobench.tasks.metric import Metric
from orthobench.tasks.scaled import SCORE, scaled, scaled_resolution
from orthobench.tasks.synthetic import Arrays, Drawn

TOGETHER = 1 << 16


class Varied(Drawn):
    """Tokens in, classes out, batches (x, target, mask) of shape (B, T); T is the longest sequence's.

    A subclass says what `sequences` it makes of uniform numbers, and sets what follows.

    Attributes:
        span: the range that lengths or delays are drawn from, both ends included.
        length: steps of a padded sequence.
        width: uniform numbers that a sequence takes.
        chance: share of right answers of the best predictor that does not see the input.
        answers: outputs of a sequence that count; of the longest one where their number differs.
    """

    tokens_in: bool = True
    readout: ClassVar[Literal["last", "all"]] = "all"
    metric: ClassVar[str] = "score"
    length_key: ClassVar[str] = "length"
    fixed_length: ClassVar[str | None] = "its sequences differ in length; use task.length=[LOWEST,HIGHEST]"
    T: int | None = None
    span: tuple[int, int]
    length: int
    width: int
    chance: float
    answers: int = 1
    _drawn: tuple[tuple[Split, int, int] | None, Arrays] = (None, ())

    @property
    def test_steps(self) -> int:
        """Steps of a padded sequence of the test split."""
        return self.length

    @abstractmethod
    def sequences(self, u_BW: np.ndarray) -> Arrays:
        """Arrays (x, target, mask) from uniform numbers, a row of them for every sequence."""

    def generate(self, rng: np.random.Generator | np.random.RandomState, size: int) -> Arrays:
        return self.sequences(rng.random((size, self.width)))

    def batch(self, split: Split, epoch: int, index: int) -> Batch:
        epoch, size = self.place(split, epoch, index)
        full = self.full(split)
        together = max(1, TOGETHER // (full * self.length))
        block = (split, epoch, index // together)
        if self._drawn[0] != block:
            stream = np.random.PCG64([self.seed, SPLITS.index(split), epoch, *self.span])
            stream.advance(block[2] * together * full * self.width)
            self._drawn = block, self.generate(np.random.Generator(stream), together * full)
        row = index % together * full
        return tuple(torch.tensor(a[row : row + size]) for a in self._drawn[1])

    @classmethod
    def declared(cls) -> tuple[Metric, ...]:
        return (*super().declared(), SCORE)

    def blind(self, accuracy: float) -> dict[str, float]:
        """Metrics of a predictor with a share of right answers, as `order_blind` gives them."""
        return {"accuracy": accuracy, "score": scaled(accuracy, self.chance)}

    def loss(self, y: Tensor, target: Tensor, mask: Tensor | None = None) -> Tensor:
        """Cross-entropy in nats of y (B, T, O), the mean over sequences of the mean over the outputs that count."""
        return _mean(cross_entropy(y, target, "none"), mask)

    def measure(self, y: Tensor, target: Tensor, mask: Tensor | None = None) -> dict[str, Tensor]:
        """`loss`; `accuracy` over the outputs that count; `score`, the same with the trivial predictor at 0."""
        accuracy = _mean((y.argmax(-1) == target).double(), mask)
        return {"loss": self.loss(y, target, mask), "accuracy": accuracy, "score": scaled(accuracy, self.chance)}

    def resolution(self, name: str, split: Split) -> float:
        return scaled_resolution(super().resolution(name, split), name, self.chance)


def _mean(values_BT: Tensor, mask_BT: Tensor | None) -> Tensor:
    if mask_BT is None:
        return values_BT.mean()
    return ((values_BT * mask_BT).sum(1) / mask_BT.sum(1)).mean()


def whole(u: np.ndarray, low: int, high: Any) -> np.ndarray:
    """Whole numbers from low..high, both included, from uniform ones; `high` may be an array."""
    return low + (u * (high - low + 1)).astype(np.int64)
