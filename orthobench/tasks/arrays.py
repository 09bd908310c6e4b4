"""Tasks whose whole data set fits in memory as arrays."""

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
import torch

from orthobench.common.registry import is_ours
from orthobench.datasets import opened
from orthobench.errors import DataError
from orthobench.tasks.base import SPLITS, Batch, Split, Task
from orthobench.tasks.seen import digests


class ArrayTask(Task):
    """Task from rows of arrays; training rows are shuffled in every epoch by a generator seeded with (seed, epoch).

    A subclass says how many rows each split has (`rows`, known without the data) and reads them (`load`).

    Attributes:
        keeps_rest: whether the rows left over after the whole training batches of an epoch make a smaller one.

    Args:
        **kwargs: see `Task`.
    """

    keeps_rest: ClassVar[bool] = False

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._data: dict[str, Batch] | None = None
        self._order: tuple[int, np.ndarray] = (-1, np.empty(0, dtype=np.int64))

    @abstractmethod
    def rows(self, split: Split) -> int:
        """Number of examples of a split."""

    @abstractmethod
    def load(self) -> dict[str, Batch]:
        """Tensors (x, target) of every split, read from `data_root`: x (rows, T, I) and target (rows,) or (rows, O).

        Raises:
            DataError: the data is missing or damaged.
        """

    def check(self) -> None:
        if self._data is None:
            before = opened.now()
            data = self.load()
            self._files = opened.since(before)
            if not is_ours(type(self)):
                self._refuse_wrong_arrays(data)
            self._data = data

    def _refuse_wrong_arrays(self, data: dict[str, Batch]) -> None:
        """Look at what a class from outside the package has loaded.

        Raises:
            DataError: a split is missing, has other rows than `rows` says, or values that are not finite.
        """
        name = type(self).__name__
        for split in SPLITS:
            if not isinstance(data, dict) or split not in data:
                raise DataError(f"{name}: `load` returns no {split} split: return a dictionary of train, val and test.")
            kinds = [type(array).__name__ for array in data[split]]
            if len(kinds) < 2 or not all(isinstance(array, torch.Tensor) for array in data[split]):
                raise DataError(f"{name}: `load` returns {kinds} for {split}; tensors (x, target) are needed.")
            counts = {len(array) for array in data[split]}
            if counts != {self.rows(split)}:
                found = " and ".join(map(str, sorted(counts)))
                raise DataError(
                    f"{name}: `load` returns {found} rows of {split}, and `rows` says {self.rows(split)}"
                    ": make the two agree."
                )
            if any(array.is_floating_point() and not bool(torch.isfinite(array).all()) for array in data[split]):
                raise DataError(f"{name}: `load` returns values of {split} that are not finite: replace or drop them.")

    def row_digests(self, split: Split) -> list[bytes]:
        self.check()
        assert self._data is not None
        return digests(self._data[split][0].numpy())

    def examples(self, split: Split) -> int:
        return self.rows(split)

    def batches(self, split: Split) -> int:
        rows = self.rows(split)
        if split == "train" and not self.keeps_rest:
            return max(rows // self.batch_size, 1)
        return -(-rows // self.full(split))

    def batch(self, split: Split, epoch: int, index: int) -> Batch:
        self.check()
        assert self._data is not None
        arrays = self._data[split]
        if split != "train":
            rows = slice(index * self.eval_batch_size, (index + 1) * self.eval_batch_size)
            return self.present(tuple(a[rows] for a in arrays))
        if self._order[0] != epoch:
            rng = np.random.default_rng([self.seed, SPLITS.index(split), epoch])
            self._order = (epoch, rng.permutation(len(arrays[0])))
        chosen = torch.from_numpy(self._order[1][index * self.batch_size : (index + 1) * self.batch_size])
        return self.present(tuple(a[chosen] for a in arrays))

    def present(self, batch: Batch) -> Batch:
        """A batch as the model is to see it, from stored rows; see `Task.batch`."""
        return batch
