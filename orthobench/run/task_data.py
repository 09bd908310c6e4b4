"""A task as Lightning's Trainer takes it: its batches in loaders of torch's."""

import orthobench.common.lean_lightning  # noqa: F401 - first: it imports Lightning without what no run uses

# isort: split

from collections.abc import Iterable, Iterator

import torch
from lightning.pytorch import LightningDataModule
from torch.utils.data import DataLoader

from orthobench.tasks.base import Batch, Task
from orthobench.tasks.batches import Batches, Stream
from orthobench.tasks.divided import Split


class InTurn:
    """Batches that are made where they are asked for, without what a loader of torch's does for its workers.

    Args:
        batches: a split's batches by position.
        positions: the positions, in order.
        pin_memory: whether to copy them to pinned memory, from which a GPU takes them without waiting.
    """

    def __init__(self, batches: Batches, positions: Iterable[tuple[int, int]], pin_memory: bool) -> None:
        self.batches, self.positions, self.pin_memory = batches, positions, pin_memory

    def __iter__(self) -> Iterator[Batch]:
        for position in self.positions:
            batch = self.batches[position]
            yield tuple(t.pin_memory() for t in batch) if self.pin_memory else batch


class TaskData(LightningDataModule):
    """The batches of a task, of which those of training have no end.

    Args:
        task: the task.
        first: the batch of the whole run at which training starts.
        epoch_batches: training batches of an epoch; all of the task's where None.
    """

    def __init__(self, task: Task, first: int = 0, epoch_batches: int | None = None) -> None:
        super().__init__()
        self.task, self.first, self.epoch_batches = task, first, epoch_batches

    def setup(self, stage: str) -> None:
        """Let the task look at its data."""
        self.task.setup(stage)

    def train_dataloader(self) -> DataLoader[Batch] | InTurn:
        """Endless training batches, from the first that is asked for."""
        positions = Stream(self.epoch_batches or self.task.batches("train"), self.first)
        if self.task.num_workers:
            return self._loader("train", positions)
        return InTurn(Batches(self.task, "train"), positions, self._pinned)

    def val_dataloader(self) -> list[DataLoader[Batch]]:
        """The validation split, and the test split where the paper selected on it."""
        splits: tuple[Split, ...] = ("val", "test") if self.task.select_on_test else ("val",)
        return [self._loader(split, self._once(split)) for split in splits]

    def test_dataloader(self) -> DataLoader[Batch]:
        """The test split, once."""
        return self._loader("test", self._once("test"))

    @property
    def _pinned(self) -> bool:
        return self.trainer is not None and self.trainer.strategy.root_device.type == "cuda"

    def _once(self, split: Split) -> list[tuple[int, int]]:
        """Positions of one pass over a split."""
        return [(0, index) for index in range(self.task.batches(split))]

    def _loader(self, split: Split, sampler: Iterable[tuple[int, int]]) -> DataLoader[Batch]:
        return DataLoader(
            Batches(self.task, split),
            batch_size=None,
            sampler=sampler,
            num_workers=self.task.num_workers,
            pin_memory=self._pinned,
            generator=torch.Generator().manual_seed(0),
            persistent_workers=self.task.num_workers > 0,
        )
