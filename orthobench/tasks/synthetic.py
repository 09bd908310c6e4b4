"""Tasks whose sequences are drawn, not read."""

from abc import abstractmethod
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch

from orthobench.common.schema import Positive
from orthobench.errors import ConfigError
from orthobench.tasks.base import SPLITS, Batch, Split, Task
from orthobench.tasks.lengths import Lengths

Variant = Literal["paper", "code"]
Arrays = tuple[np.ndarray, ...]
Whole = int | list[int]
SAMPLE = tuple(b"sample")  # more words than a split's seed has


class Drawn(Lengths):
    """Sequences drawn by `generate`, and how many of them a split has.

    Args:
        train_size: sequences of a training set that is drawn once and visited in order, those left over after the
            whole batches in a smaller one; null draws fresh ones without end.
        val_size: sequences for validation.
        test_size: sequences for testing.
        epoch_batches: length of an epoch when sequences are drawn fresh.
        **kwargs: see `Lengths` and `Task`.
    """

    def __init__(
        self,
        train_size: Positive | None = None,
        val_size: Positive = 1000,
        test_size: Positive = 1000,
        epoch_batches: Positive = 1000,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.sizes: dict[str, int | None] = {"train": train_size, "val": val_size, "test": test_size}
        self.epoch_batches = epoch_batches

    @abstractmethod
    def generate(self, rng: np.random.Generator | np.random.RandomState, size: int) -> Arrays:
        """Draw `size` sequences from `rng`: arrays (x, target), or (x, target, mask).

        Returns:
            x (size, T, I) in float32, or tokens (size, T) in int64; targets and mask as in `Task.batch`.
        """

    def sample(self, batch_size: int, seed: int) -> Batch:
        """A batch of `batch_size` sequences that depends on it and `seed` alone; no split of any seed has these.

        Returns:
            What `generate` makes, as tensors: see `Task.batch`.
        """
        stream = np.random.SeedSequence(seed, spawn_key=SAMPLE)
        return self._tensors(np.random.default_rng(stream), batch_size)

    def examples(self, split: Split) -> int | None:
        return self.sizes[split]

    def batches(self, split: Split) -> int:
        size = self.sizes[split]
        if size is None:
            return self.epoch_batches
        return -(-size // self.full(split))

    def place(self, split: Split, epoch: int, index: int) -> tuple[int, int]:
        """The pass that batch `index` of pass `epoch` over a `split` is drawn for, and its number of sequences."""
        whole, full = self.sizes[split], self.full(split)
        if whole is None:
            return epoch, full
        return (0 if split == "train" else epoch), min(full, whole - index * full)

    def _tensors(self, rng: np.random.Generator, size: int) -> Batch:
        arrays = self.generate(rng, size)
        counts = [len(array) for array in arrays]
        if counts != [size] * len(arrays):
            raise ConfigError(
                f"{type(self).__name__}: `generate` returns {counts} sequences where {size} are asked for"
                ": return that many."
            )
        return tuple(torch.from_numpy(array) for array in arrays)


class Synthetic(Drawn):
    """Task whose batches are drawn: `generate(rng, size)` with a generator seeded by (seed, split, epoch, index).

    Attributes:
        shortest: the smallest T for which the task makes sense.

    Args:
        T: the task's length in steps.
        **kwargs: see `Drawn`.
    """

    T: int
    shortest: ClassVar[int] = 1
    _drawn_by: int | None = None

    def __init__(self, T: Positive = 100, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.T = T

    def read_as(self, trained: Task) -> None:
        """Draw the sequences that `trained` draws, however many a batch has here: those depend on its batches."""
        assert isinstance(trained, Synthetic)
        self._drawn_by = trained.eval_batch_size

    def at_length(self, length: int) -> Self:
        found = super().at_length(length)
        found._drawn_by = self._drawn_by
        return found

    def batch(self, split: Split, epoch: int, index: int) -> Batch:
        epoch, size = self.place(split, epoch, index)
        by = self.full(split) if split == "train" or self._drawn_by is None else self._drawn_by
        if by == self.full(split):
            return self._draw(split, epoch, index, size)
        whole, start = self.sizes[split] or size, index * self.full(split)
        drawn = range(start // by, -(-(start + size) // by))
        parts = [self._draw(split, epoch, one, min(by, whole - one * by)) for one in drawn]
        first = start - drawn.start * by
        return tuple(torch.cat(arrays)[first : first + size] for arrays in zip(*parts, strict=True))

    def _draw(self, split: Split, epoch: int, index: int, size: int) -> Batch:
        return self._tensors(np.random.default_rng([self.seed, SPLITS.index(split), epoch, index]), size)


def integers(
    rng: np.random.Generator | np.random.RandomState, low: Whole, high: Whole, size: tuple[int, ...]
) -> np.ndarray:
    """Whole numbers from low..high-1, which broadcast to `size`, in either kind of generator."""
    draw = rng.integers if isinstance(rng, np.random.Generator) else rng.randint
    return draw(low, high, size=size)
