"""Laws of every synthetic task of this folder: a batch depends on (seed, split, epoch, index) and on nothing else."""

import itertools

import numpy as np
import pytest
import torch

from orthobench.run.task_data import TaskData
from orthobench.tasks.drawn.adding import Adding
from orthobench.tasks.drawn.denoise import Denoise
from orthobench.tasks.drawn.kth_largest import KthLargest
from orthobench.tasks.drawn.parenthesis import Parenthesis
from orthobench.tasks.drawn.recall import Recall
from orthobench.tasks.synthetic import Synthetic

TASKS = [
    (Parenthesis, {"T": 20, "variant": "code"}),
    (Parenthesis, {"T": 20, "variant": "paper"}),
    (Denoise, {"T": 20, "variant": "code"}),
    (Denoise, {"T": 20, "variant": "paper"}),
    (Recall, {"T": 20}),
    (KthLargest, {"T": 20}),
]
every_task = pytest.mark.parametrize(("cls", "options"), TASKS, ids=lambda value: getattr(value, "__name__", None))


def same(a: tuple[torch.Tensor, ...], b: tuple[torch.Tensor, ...]) -> bool:
    return all(torch.equal(u, v) for u, v in zip(a, b, strict=True))


@every_task
def test_batch_is_a_pure_function(cls: type[Synthetic], options: dict) -> None:
    first, again = (cls(seed=3, batch_size=8, **options) for _ in range(2))
    torch.manual_seed(0)
    np.random.seed(0)
    batch = first.batch("train", 1, 2)
    torch.manual_seed(1)
    np.random.seed(1)
    again.batch("val", 0, 0)
    assert same(again.batch("train", 1, 2), batch)


@every_task
def test_batches_differ(cls: type[Synthetic], options: dict) -> None:
    positions = [(1, "train", 0, 0), (2, "train", 0, 0), (1, "val", 0, 0), (1, "test", 0, 0), (1, "train", 1, 0)]
    sizes = {"batch_size": 8, "eval_batch_size": 8}
    batches = [cls(seed=seed, **sizes, **options).batch(*position)[0] for seed, *position in positions]
    batches.append(cls(seed=1, **sizes, **options).batch("train", 0, 1)[0])
    assert not any(torch.equal(a, b) for a, b in itertools.combinations(batches, 2))


@every_task
def test_a_drawn_set_is_the_same_in_every_epoch(cls: type[Synthetic], options: dict) -> None:
    task = cls(train_size=40, batch_size=8, **options)
    assert task.batches("train") == 5
    assert same(task.batch("train", 7, 3), task.batch("train", 0, 3))


@every_task
def test_legacy_generator_draws_the_same_shapes(cls: type[Synthetic], options: dict) -> None:
    task = cls(**options)
    legacy, modern = task.generate(np.random.RandomState(1), 5), task.generate(np.random.default_rng(1), 5)
    assert [(a.shape, a.dtype) for a in legacy] == [(a.shape, a.dtype) for a in modern]


@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
def test_workers_do_not_change_the_numbers() -> None:
    def first_batches(workers: int) -> list[tuple[torch.Tensor, ...]]:
        loader = TaskData(Denoise(T=20, batch_size=4, num_workers=workers)).train_dataloader()
        batches = iter(loader)
        found = [tuple(a.clone() for a in next(batches)) for _ in range(5)]
        del batches
        return found

    for alone, with_workers in zip(first_batches(0), first_batches(2), strict=True):
        assert same(alone, with_workers)


def test_addition_as_sgornn_and_spectral_rnn_draw_it() -> None:
    fresh = Adding(T=501, train_size=None, batch_size=64, val_size=640)
    assert not same(fresh.batch("train", 0, 0), fresh.batch("train", 1, 0))
    marks = fresh.sample(2000, seed=1)[0][..., 1].numpy()
    assert (marks[:, :250].sum(1) == 1).all()
    assert (marks[:, 250:].sum(1) == 1).all()
    assert Adding(T=100, train_size=50_000, test_size=1000).batches("train") == 1000
