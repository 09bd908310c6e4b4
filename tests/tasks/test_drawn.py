"""Laws of every task whose sequences are drawn: a batch depends on (seed, split, epoch, index) and on nothing else."""

import itertools
from typing import Any

import numpy as np
import pytest
import torch

from orthobench.common.registry import find, names
from orthobench.run.task_data import TaskData
from orthobench.tasks.base import Batch
from orthobench.tasks.drawn.adding import Adding
from orthobench.tasks.drawn.copying import Copying
from orthobench.tasks.drawn.cued_recall import CuedRecall
from orthobench.tasks.drawn.denoise import Denoise
from orthobench.tasks.drawn.kth_largest import KthLargest
from orthobench.tasks.drawn.parenthesis import Parenthesis
from orthobench.tasks.drawn.recall import Recall
from orthobench.tasks.drawn.varied import Varied

BOTH = {
    f"{cls.__name__}-{variant}": (cls, {"T": 20, "variant": variant})
    for cls in (Copying, Adding, Parenthesis, Denoise)
    for variant in ("paper", "code")
}
Named = dict[str, tuple[Any, dict[str, Any]]]
GENERATED: Named = BOTH | {cls.__name__: (cls, {"T": 20}) for cls in (Recall, KthLargest)}
VARIED = [cls for cls in (find("task", name, "task") for name in names("task")) if issubclass(cls, Varied)]
TASKS: Named = GENERATED | {cls.__name__: (cls, {}) for cls in VARIED}
SPLITS = ["train", "val", "test"]
every_task = pytest.mark.parametrize("name", TASKS)


def make(name: str | type, **kwargs: Any) -> Any:
    cls, options = TASKS[name] if isinstance(name, str) else (name, {} if name in VARIED else {"T": 12})
    return cls(**{"seed": 3, "batch_size": 8, "eval_batch_size": 8, **options, **kwargs})


def equal(first: Batch, second: Batch) -> bool:
    return all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@every_task
@pytest.mark.parametrize("split", SPLITS)
def test_a_batch_is_a_pure_function(name: str, split: Any) -> None:
    torch.manual_seed(0)
    np.random.seed(0)
    before, legacy = torch.get_rng_state(), np.random.get_state()[1].copy()
    batch = make(name).batch(split, 1, 2)
    assert torch.equal(torch.get_rng_state(), before)
    assert np.array_equal(np.random.get_state()[1], legacy)
    torch.manual_seed(1)
    np.random.seed(1)
    used = make(name)
    for position in (("val", 0, 0), ("train", 0, 500), ("train", 3, 0)):
        used.batch(*position)
    assert equal(used.batch(split, 1, 2), batch)


@every_task
def test_every_argument_counts(name: str) -> None:
    positions: list[Any] = [
        (3, "train", 0, 0), (4, "train", 0, 0), (3, "val", 0, 0), (3, "test", 0, 0), (3, "train", 1, 0),
        (3, "train", 0, 1), (3, "train", 0, 200), (3, "train", 1, 1),
    ]  # fmt: skip
    batches = [make(name, seed=seed).batch(*position)[0] for seed, *position in positions]
    assert not any(torch.equal(a, b) for a, b in itertools.combinations(batches, 2))


@every_task
def test_a_batch_can_be_changed_without_changing_the_data(name: str) -> None:
    own = make(name, train_size=8)
    for split in SPLITS:
        before = own.batch(split, 0, 0)[0].clone()
        own.batch(split, 0, 0)[0].fill_(-1)
        assert torch.equal(own.batch(split, 0, 0)[0], before)


@every_task
def test_every_sequence_of_a_training_set_is_used_once_in_an_epoch(name: str) -> None:
    fixed, whole = (make(name, train_size=size) for size in (21, 24))
    assert fixed.batches("train") == 3
    first, again = ([fixed.batch("train", epoch, index) for index in range(3)] for epoch in (0, 7))
    assert [len(part[0]) for part in first] == [8, 8, 5]
    assert all(equal(a, b) for a, b in zip(first, again, strict=True))
    assert all(equal(first[index], whole.batch("train", 0, index)) for index in range(2))
    assert not any(torch.equal(a[0][:5], b[0][:5]) for a, b in itertools.combinations(first, 2))
    assert len(make(name, train_size=3).batch("train", 0, 0)[0]) == 3, "a smaller one is not filled up"


@every_task
def test_a_sample_depends_on_its_arguments_alone(name: str) -> None:
    one, other = make(name, seed=9), make(name, seed=2)
    assert equal(one.sample(4, 9), other.sample(4, 9))
    assert not equal(one.sample(4, 9), one.sample(4, 10))
    sequences, own = (
        torch.cat([one.batch(split, 0, index)[0] for split in SPLITS for index in range(4)]),
        one.sample(8, 9)[0],
    )
    assert not torch.equal(own, sequences[:8])
    assert name not in BOTH or not any(torch.equal(a, b) for a in own for b in sequences), "its seed's batches have it"


@pytest.mark.parametrize("name", GENERATED)
def test_a_legacy_generator_draws_the_same_shapes(name: str) -> None:
    task = make(name)
    legacy, modern = task.generate(np.random.RandomState(1), 5), task.generate(np.random.default_rng(1), 5)
    assert [(a.shape, a.dtype) for a in legacy] == [(a.shape, a.dtype) for a in modern]


@pytest.mark.parametrize("size", [1, 3, 5, 8, 13, 100])
def test_read_as_another_it_draws_the_same_sequences_in_other_batches(size: int) -> None:
    own, other = (make("Copying-paper", test_size=21, eval_batch_size=count) for count in (5, size))
    other.read_as(own)
    for one, two in ((own, other), (own.at_length(25), other.at_length(25))):
        whole = ([t.batch("test", 0, i) for i in range(t.batches("test"))] for t in (one, two))
        assert equal(*(tuple(map(torch.cat, zip(*batches, strict=True))) for batches in whole))
    assert equal(own.batch("train", 1, 2), other.batch("train", 1, 2))


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
    assert make(Copying, **sizes).batches(split) == batches


def test_training_goes_on_where_it_is_told_to() -> None:
    resumed = make(Copying)
    found = itertools.islice(TaskData(resumed, 23, 10).train_dataloader(), 8)
    expected = [(2, i) for i in range(3, 10)] + [(3, 0)]
    assert all(equal(a, resumed.batch("train", *b)) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize(
    ("select_on_test", "splits"), [(False, ["val"]), (True, ["val", "test"])], ids=["validation", "and test"]
)
def test_validation_loaders(select_on_test: bool, splits: list[Any]) -> None:
    own = make(Copying, val_size=9, test_size=9, select_on_test=select_on_test)
    for loader, split in zip(TaskData(own).val_dataloader(), splits, strict=True):
        assert all(equal(a, own.batch(split, 0, i)) for i, a in enumerate(loader))
        assert len(loader) == 2


@every_task
def test_the_test_loader_is_one_pass(name: str) -> None:
    own = make(name, test_size=19)
    assert [len(batch[0]) for batch in TaskData(own).test_dataloader()] == [8, 8, 3]


@pytest.mark.parametrize("cls", [Adding, CuedRecall])
@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning", "ignore:This DataLoader will create")
def test_workers_do_not_change_the_numbers(cls: type) -> None:
    alone, beside = (
        list(itertools.islice(TaskData(make(cls, num_workers=workers)).train_dataloader(), 5)) for workers in (0, 2)
    )
    assert all(equal(a, b) for a, b in zip(alone, beside, strict=True))
