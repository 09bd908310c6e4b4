"""A task as Lightning's Trainer takes it: its batches in loaders of torch's."""

import orthobench.lean_lightning  # noqa: F401 - first: it imports Lightning without what no run uses

# isort: split

from collections.abc import Iterable

import torch
from lightning.pytorch import LightningDataModule
from torch.utils.data import DataLoader

from orthobench.tasks.base import Batch, Task
from orthobench.tasks.batches import Batches, Stream
from orthobench.tasks.divided import Split


class TaskData(LightningDataModule):
    """The batches of a task, of which those of training have no end.

    Args:
        task: the task.
        first: the batch of the whole run at which training starts.
        epoch_batches: training batches of an epoch; all of the task's where null.
    """

    def __init__(self, task: Task, first: int = 0, epoch_batches: int | None = None) -> None:
        super().__init__()
        self.task, self.first, self.epoch_batches = task, first, epoch_batches

    def setup(self, stage: str) -> None:
        """Let the task look at its data."""
        self.task.setup(stage)

    def train_dataloader(self) -> DataLoader[Batch]:
        """Endless training batches, from the first that is asked for."""
        return self._loader("train", Stream(self.epoch_batches or self.task.batches("train"), self.first))

    def val_dataloader(self) -> list[DataLoader[Batch]]:
        """The validation split, and the test split where the paper selected on it."""
        splits: tuple[Split, ...] = ("val", "test") if self.task.select_on_test else ("val",)
        return [self._loader(split, self._once(split)) for split in splits]

    def test_dataloader(self) -> DataLoader[Batch]:
        """The test split, once."""
        return self._loader("test", self._once("test"))

    def _once(self, split: Split) -> list[tuple[int, int]]:
        """Positions of one pass over a split."""
        return [(0, index) for index in range(self.task.batches(split))]

    def _loader(self, split: Split, sampler: Iterable[tuple[int, int]]) -> DataLoader[Batch]:
        return DataLoader(
            Batches(self.task, split),
            batch_size=None,
            sampler=sampler,
            num_workers=self.task.num_workers,
            pin_memory=self.trainer is not None and self.trainer.strategy.root_device.type == "cuda",
            generator=torch.Generator().manual_seed(0),
            persistent_workers=self.task.num_workers > 0,
        )
