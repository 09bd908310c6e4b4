"""Batches are a pure function of (seed, split, epoch, index): what every drawn task promises, on copying and adding."""

import itertools
from typing import Any

import numpy as np
import pytest
import torch

from orthobench.run.task_data import TaskData
from orthobench.tasks.base import Batch
from orthobench.tasks.drawn.adding import Adding
from orthobench.tasks.drawn.copying import Copying
from orthobench.tasks.synthetic import Synthetic

TASKS = [
    pytest.param(cls, variant, id=f"{cls.__name__}-{variant}")
    for cls in (Copying, Adding)
    for variant in ("paper", "code")
]
SPLITS = ["train", "val", "test"]


def task(cls: type[Synthetic], **kwargs: Any) -> Synthetic:
    return cls(**{"T": 12, "seed": 3, "batch_size": 8, "eval_batch_size": 8, **kwargs})


def equal(first: Batch, second: Batch) -> bool:
    return all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize(("cls", "variant"), TASKS)
@pytest.mark.parametrize("split", SPLITS)
def test_the_same_arguments_give_the_same_batch(cls: type[Synthetic], variant: str, split: Any) -> None:
    first, second = (task(cls, variant=variant).batch(split, 2, 5) for _ in range(2))
    assert equal(first, second)


@pytest.mark.parametrize("size", [1, 3, 5, 8, 13, 100])
def test_read_as_another_it_draws_the_same_sequences_in_other_batches(size: int) -> None:
    cls, variant = TASKS[0].values
    own = task(cls, variant=variant, test_size=21, eval_batch_size=5)
    other = task(cls, variant=variant, test_size=21, eval_batch_size=size)
    other.read_as(own)
    for one, two in ((own, other), (own.at_length(20), other.at_length(20))):
        whole = ([t.batch("test", 0, i) for i in range(t.batches("test"))] for t in (one, two))
        assert equal(*(tuple(map(torch.cat, zip(*batches, strict=True))) for batches in whole))
    assert equal(own.batch("train", 1, 2), other.batch("train", 1, 2))


@pytest.mark.parametrize(("cls", "variant"), TASKS)
@pytest.mark.parametrize(
    ("split", "epoch", "index", "seed"),
    [("train", 3, 5, 3), ("train", 2, 6, 3), ("train", 2, 5, 4), ("val", 2, 5, 3), ("test", 2, 5, 3)],
)
def test_any_other_argument_gives_another_batch(
    cls: type[Synthetic], variant: str, split: Any, epoch: int, index: int, seed: int
) -> None:
    first = task(cls, variant=variant).batch("train", 2, 5)
    assert not equal(task(cls, variant=variant, seed=seed).batch(split, epoch, index), first)


def test_validation_and_test_differ() -> None:
    assert not equal(task(Copying).batch("val", 0, 0), task(Copying).batch("test", 0, 0))


def test_batches_do_not_depend_on_what_was_asked_before() -> None:
    used = task(Adding)
    for index in range(3):
        used.batch("train", 0, index)
    assert equal(used.batch("train", 1, 0), task(Adding).batch("train", 1, 0))


def test_global_random_state_neither_counts_nor_moves() -> None:
    torch.manual_seed(1)
    before, legacy = torch.get_rng_state(), np.random.get_state()[1].copy()
    first = task(Adding).batch("train", 0, 0)
    assert torch.equal(torch.get_rng_state(), before)
    assert np.array_equal(np.random.get_state()[1], legacy)
    torch.manual_seed(2)
    assert equal(task(Adding).batch("train", 0, 0), first)


@pytest.mark.parametrize(("cls", "variant"), TASKS)
def test_a_fixed_training_set_repeats_in_every_epoch(cls: type[Synthetic], variant: str) -> None:
    fixed = task(cls, variant=variant, train_size=40)
    assert equal(fixed.batch("train", 0, 3), fixed.batch("train", 7, 3))


def test_a_fixed_training_set_has_different_batches() -> None:
    fixed = task(Adding, train_size=40)
    assert not equal(fixed.batch("train", 0, 3), fixed.batch("train", 0, 4))


@pytest.mark.parametrize(
    ("sizes", "split", "batches"),
    [
        ({}, "train", 1000),
        ({"epoch_batches": 7}, "train", 7),
        ({"train_size": 40}, "train", 5),
        ({"train_size": 41}, "train", 6),
        ({"train_size": 3}, "train", 1),
        ({"val_size": 16}, "val", 2),
        ({"val_size": 17}, "val", 3),
        ({"test_size": 1}, "test", 1),
    ],
)
def test_batches_of_a_pass(sizes: dict[str, int], split: Any, batches: int) -> None:
    assert task(Copying, **sizes).batches(split) == batches


@pytest.mark.parametrize(("split", "index", "size"), [("val", 0, 8), ("val", 1, 8), ("val", 2, 1), ("test", 0, 5)])
def test_the_last_evaluation_batch_is_smaller(split: Any, index: int, size: int) -> None:
    x, target = task(Copying, val_size=17, test_size=5).batch(split, 0, index)
    assert len(x) == len(target) == size


def test_every_sequence_of_a_training_set_is_used_once_in_an_epoch() -> None:
    fixed, whole = (task(Adding, train_size=size) for size in (21, 24))
    first, again = ([fixed.batch("train", epoch, index) for index in range(3)] for epoch in (0, 5))
    assert [len(x) for x, _ in first] == [8, 8, 5]
    assert all(equal(a, b) for a, b in zip(first, again, strict=True))
    assert len(torch.cat([x for x, _ in first]).unique(dim=0)) == 21, "the last five are no sequences of before"
    assert all(equal(first[index], whole.batch("train", 0, index)) for index in range(2))


def test_a_training_set_smaller_than_a_batch_is_not_filled_up() -> None:
    assert len(task(Copying, train_size=3).batch("train", 0, 0)[0]) == 3


@pytest.mark.parametrize(("cls", "variant"), TASKS)
def test_a_sample_depends_on_its_arguments_alone(cls: type[Synthetic], variant: str) -> None:
    assert equal(task(cls, variant=variant, seed=1).sample(4, 9), task(cls, variant=variant, seed=2).sample(4, 9))


@pytest.mark.parametrize(("cls", "variant"), TASKS)
@pytest.mark.parametrize("split", SPLITS)
def test_a_sample_is_no_batch_of_the_same_seed(cls: type[Synthetic], variant: str, split: Any) -> None:
    own = task(cls, variant=variant, seed=9)
    sequences = torch.cat([own.batch(split, 0, index)[0] for index in range(4)])
    assert not any(torch.equal(a, b) for a in own.sample(8, 9)[0] for b in sequences)


@pytest.mark.parametrize(("size", "seed"), [(4, 10), (5, 9)])
def test_another_sample_for_other_arguments(size: int, seed: int) -> None:
    assert not equal(task(Copying).sample(size, seed)[:1], task(Copying).sample(4, 9)[:1])


def test_training_goes_on_where_it_is_told_to() -> None:
    resumed = task(Copying)
    found = itertools.islice(TaskData(resumed, 23, 10).train_dataloader(), 8)
    expected = [(2, i) for i in range(3, 10)] + [(3, 0)]
    assert all(equal(a, resumed.batch("train", *b)) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize(
    ("select_on_test", "splits"), [(False, ["val"]), (True, ["val", "test"])], ids=["validation", "and test"]
)
def test_validation_loaders(select_on_test: bool, splits: list[Any]) -> None:
    own = task(Copying, val_size=9, test_size=9, select_on_test=select_on_test)
    for loader, split in zip(TaskData(own).val_dataloader(), splits, strict=True):
        assert all(equal(a, own.batch(split, 0, i)) for i, a in enumerate(loader))
        assert len(loader) == 2


def test_the_test_loader_is_one_pass() -> None:
    own = task(Copying, test_size=17)
    assert [len(x) for x, _ in TaskData(own).test_dataloader()] == [8, 8, 1]


@pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")  # on a single core
def test_workers_do_not_change_the_numbers() -> None:
    batches = []
    for workers in (0, 2):
        own = task(Adding, num_workers=workers)
        batches.append(list(itertools.islice(TaskData(own).train_dataloader(), 5)))
    assert all(equal(a, b) for a, b in zip(*batches, strict=True))
