from types import SimpleNamespace
from typing import Any

import pytest

from orthobench.tasks.duration import Duration, duration

TASK: Any = SimpleNamespace(batches=lambda split: {"train": 1100}[split])


@pytest.mark.parametrize(
    ("trainer", "expected"),
    [
        ({"max_steps": 10_000}, Duration(1100, 1, 10_000, 1100)),
        ({"max_epochs": 70}, Duration(1100, 1, 77_000, 1100)),
        ({"max_epochs": 70, "max_steps": -1}, Duration(1100, 1, 77_000, 1100)),
        ({"max_epochs": 2, "max_steps": 500}, Duration(1100, 1, 500, 1100)),
        ({"max_epochs": 2, "max_steps": 5000}, Duration(1100, 1, 2200, 1100)),
        ({"max_epochs": 2, "limit_train_batches": 50}, Duration(50, 1, 100, 50)),
        ({"max_epochs": 2, "limit_train_batches": 0.5}, Duration(550, 1, 1100, 550)),
        ({"max_epochs": 2, "limit_train_batches": 1e-9}, Duration(1, 1, 2, 1)),
        ({"max_epochs": 2, "limit_train_batches": 2000}, Duration(1100, 1, 2200, 1100)),
        ({"max_epochs": 2, "limit_train_batches": 1}, Duration(1, 1, 2, 1)),
        ({"max_time": "00:01:00:00", "max_steps": -1, "max_epochs": None}, Duration(1100, 1, None, 1100)),
        ({"max_epochs": 2, "accumulate_grad_batches": 4}, Duration(1100, 4, 550, 1100)),
        ({"max_epochs": 2, "accumulate_grad_batches": None}, Duration(1100, 1, 2200, 1100)),
        ({"max_epochs": 2, "accumulate_grad_batches": 5000}, Duration(1100, 5000, 1, 5000)),  # one step at least
        ({"max_steps": 9, "val_check_interval": 10, "accumulate_grad_batches": 4}, Duration(1100, 4, 9, 12)),
        ({"max_steps": 9, "val_check_interval": 500}, Duration(1100, 1, 9, 500)),
        ({"max_steps": 9, "val_check_interval": 2500}, Duration(1100, 1, 9, 2500)),
        ({"max_steps": 9, "val_check_interval": 0.25}, Duration(1100, 1, 9, 275)),
        ({"max_steps": 9, "val_check_interval": 1e-9}, Duration(1100, 1, 9, 1)),
        ({"max_steps": 9, "val_check_interval": 1}, Duration(1100, 1, 9, 1)),
        ({"max_steps": 9, "val_check_interval": 0.5, "limit_train_batches": 20}, Duration(20, 1, 9, 10)),
        ({"max_steps": 9, "check_val_every_n_epoch": 3}, Duration(1100, 1, 9, 3300)),
        ({"max_steps": 9, "min_steps": 4}, Duration(1100, 1, 9, 1100, 4)),
        ({"max_steps": 9, "min_epochs": 2}, Duration(1100, 1, 9, 1100, 2200)),
        (
            {"max_steps": 9, "min_epochs": 1, "accumulate_grad_batches": 3},
            Duration(1100, 3, 9, 1101, 367),
        ),  # whole ones
        ({"max_steps": 9, "min_epochs": 2, "min_steps": 4, "limit_train_batches": 5}, Duration(5, 1, 9, 5, 10)),
    ],
)
def test_duration(trainer: dict[str, Any], expected: Duration) -> None:
    assert duration(trainer, TASK.batches("train")) == expected


@pytest.mark.parametrize(("batches", "accumulate", "steps"), [(1100, 1, 1100), (1100, 4, 275), (10, 3, 3), (10, 20, 1)])
def test_steps_of_an_epoch(batches: int, accumulate: int, steps: int) -> None:
    assert Duration(batches, accumulate, None, 1).epoch_steps == steps


@pytest.mark.parametrize(("steps", "epochs"), [(0, 0), (274, 0), (275, 1), (549, 1), (550, 2)])
def test_whole_epochs(steps: int, epochs: int) -> None:
    assert Duration(1100, 4, None, 1).epochs(steps) == epochs
