"""Tasks whose sequences are drawn, not read."""

from abc import abstractmethod
from typing import Any, ClassVar, Literal

import numpy as np
import torch

from orthobench.schema import Positive
from orthobench.tasks.base import SPLITS, Batch, Split, Task

Variant = Literal["paper", "code"]
Arrays = tuple[np.ndarray, ...]


class Synthetic(Task):
    """A batch is `generate(rng, size)` with a generator seeded by (seed, split, epoch, index).

    Attributes:
        shortest: the smallest T for which the task makes sense.

    Args:
        T: the task's length.
        train_size: sequences of a training set that is drawn once and visited in order; null draws fresh ones for ever.
        val_size: sequences for validation.
        test_size: sequences for testing.
        epoch_batches: length of an epoch when sequences are drawn fresh.
        **kwargs: see `Task`.
    """

    T: int
    shortest: ClassVar[int] = 1

    def __init__(
        self,
        T: Positive = 100,
        train_size: Positive | None = None,
        val_size: Positive = 1000,
        test_size: Positive = 1000,
        epoch_batches: Positive = 1000,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.T = T
        self.sizes: dict[str, int | None] = {"train": train_size, "val": val_size, "test": test_size}
        self.epoch_batches = epoch_batches

    @abstractmethod
    def generate(self, rng: np.random.Generator | np.random.RandomState, size: int) -> Arrays:
        """Draw `size` sequences: arrays (x, target), or (x, target, mask)."""

    def sample(self, batch_size: int, seed: int) -> Batch:
        """A batch that depends on the arguments alone."""
        return self._tensors(np.random.default_rng(seed), batch_size)

    def examples(self, split: Split) -> int | None:
        return self.sizes[split]

    def batches(self, split: Split) -> int:
        size = self.sizes[split]
        if size is None:
            return self.epoch_batches
        return max(size // self.batch_size, 1) if split == "train" else -(-size // self.eval_batch_size)

    def batch(self, split: Split, epoch: int, index: int) -> Batch:
        if split == "train":
            size = min(self.batch_size, self.sizes[split] or self.batch_size)
            epoch = 0 if self.sizes[split] is not None else epoch
        else:
            size = min(self.eval_batch_size, (self.sizes[split] or 0) - index * self.eval_batch_size)
        rng = np.random.default_rng([self.seed, SPLITS.index(split), epoch, index])
        return self._tensors(rng, size)

    def _tensors(self, rng: np.random.Generator, size: int) -> Batch:
        return tuple(torch.from_numpy(a) for a in self.generate(rng, size))


def integers(
    rng: np.random.Generator | np.random.RandomState, low: int, high: int, size: tuple[int, ...]
) -> np.ndarray:
    """Whole numbers from low..high-1, in either kind of generator."""
    draw = rng.integers if isinstance(rng, np.random.Generator) else rng.randint
    return draw(low, high, size=size)
