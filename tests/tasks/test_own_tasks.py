"""Tasks from outside the package whose data are not what they say are refused before a model sees them."""

from typing import Any

import numpy as np
import pytest
import torch

from orthobench.errors import ConfigError, DataError
from orthobench.tasks.arrays import ArrayTask
from orthobench.tasks.synthetic import Synthetic

ROWS = {"train": 6, "val": 2, "test": 3}


class Table(ArrayTask):
    """Random series of two classes."""

    objective = "classify"
    input_size = 1
    output_size = 2

    def rows(self, split: Any) -> int:
        return ROWS[split]

    def load(self) -> dict[str, Any]:
        return {split: (torch.zeros(n, 4, 1), torch.zeros(n, dtype=torch.int64)) for split, n in ROWS.items()}


class Few(Table):
    def load(self) -> dict[str, Any]:
        return super().load() | {"test": (torch.zeros(2, 4, 1), torch.zeros(2, dtype=torch.int64))}


class Split(Table):
    def load(self) -> dict[str, Any]:
        return {split: arrays for split, arrays in super().load().items() if split != "val"}


class Broken(Table):
    def load(self) -> dict[str, Any]:
        return super().load() | {"test": (torch.full((3, 4, 1), torch.nan), torch.zeros(3, dtype=torch.int64))}


class Drawn(Synthetic):
    """One sequence, however many are asked for."""

    input_size = output_size = 1

    def generate(self, rng: Any, size: int) -> tuple[np.ndarray, ...]:
        return np.zeros((1, self.T, 1), np.float32), np.zeros((1, 1), np.float32)


def test_good_arrays_are_taken() -> None:
    Table().check()


@pytest.mark.parametrize(
    ("cls", "told"),
    [
        (Few, "Few: `load` returns 2 rows of test, and `rows` says 3"),
        (Split, "Split: `load` returns no val split"),
        (Broken, "Broken: `load` returns values of test that are not finite"),
    ],
)
def test_arrays_that_are_not_what_the_task_says_are_refused(cls: type[ArrayTask], told: str) -> None:
    with pytest.raises(DataError, match=told):
        cls().check()


def test_what_was_refused_is_refused_again() -> None:
    task = Broken()
    for _ in range(2):
        with pytest.raises(DataError, match="values of test that are not finite"):
            task.check()


def test_another_number_of_sequences_than_asked_for_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"Drawn: `generate` returns \[1, 1\] sequences where 20 are asked for"):
        Drawn(batch_size=20).batch("train", 0, 0)
