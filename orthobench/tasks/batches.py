"""Positions and batches of a task, as a loader of torch's takes them."""

import itertools
from collections.abc import Iterator
from typing import Any

from torch.utils.data import Dataset, Sampler


class Batches(Dataset[Any]):
    """Split of a `Task` as a map from (epoch, index) to a batch."""

    def __init__(self, task: Any, split: str) -> None:
        self.task = task
        self.split = split

    def __getitem__(self, position: tuple[int, int]) -> Any:
        return self.task.batch(self.split, *position)

    def __len__(self) -> int:
        return self.task.batches(self.split)


class Stream(Sampler[tuple[int, int]]):
    """Positions of the training batches, epoch after epoch without end."""

    def __init__(self, epoch_batches: int, first: int) -> None:
        self.epoch_batches, self.first = epoch_batches, first

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return (divmod(k, self.epoch_batches) for k in itertools.count(self.first))
