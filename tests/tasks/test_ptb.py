import math
import os
from typing import ClassVar

import numpy as np
import pytest
import torch

from orthobench.errors import ConfigError
from orthobench.run.task_data import TaskData
from orthobench.tasks.real.language import SHORTEST, Language
from orthobench.tasks.real.ptb_char import PTBChar
from orthobench.tasks.real.ptb_word import PTBWord


class Counting(PTBWord):
    """A text that counts upwards, so that a token tells its place."""

    tokens: ClassVar[dict[str, int]] = {"train": 4099, "val": 613, "test": 1001}

    def check(self) -> None:
        self._data = {split: torch.arange(size) for split, size in self.tokens.items()}


def passes(task: Language, split: str, epoch: int = 0) -> list[tuple[torch.Tensor, torch.Tensor]]:
    return [task.batch(split, epoch, i) for i in range(task.batches(split))]


@pytest.mark.parametrize("random_bptt", [False, True])
@pytest.mark.parametrize("split", ["train", "val", "test"])
def test_carried_windows_predict_every_token_once_and_go_on_where_they_stopped(split: str, random_bptt: bool) -> None:
    task = Counting(T=30, batch_size=7, eval_batch_size=3, random_bptt=random_bptt)
    assert task.carries_state
    rows = 7 if split == "train" else 3
    batches = passes(task, split, epoch=3)
    x, target = (torch.cat(part, dim=1) for part in zip(*batches, strict=True))
    steps = (task.tokens[split] - 1) // rows
    assert torch.equal(target, x + 1)
    assert torch.equal(x.flatten(), torch.arange(rows * steps))
    assert torch.equal(target.flatten(), torch.arange(1, rows * steps + 1))
    assert split != "val" or {part.shape[1] for part, _ in batches} == {30, 24}, "validation is never random"


def test_random_lengths_are_awd_lstm_s_and_depend_on_seed_and_epoch_alone() -> None:
    lengths = np.concatenate([PTBChar(T=100, random_bptt=True, seed=4).lengths(epoch) for epoch in range(3)])
    steps, per_epoch = (5_017_482 - 1) // 32, len(lengths) // 3
    assert [int(part.sum()) for part in np.split(lengths, 3)] == [steps] * 3
    assert lengths.min() >= SHORTEST
    assert per_epoch == round(steps / 97.5)
    halved = lengths < 75
    assert 0.04 < halved.mean() < 0.06  # 0.05 +- 3 standard errors
    assert abs(np.median(lengths[~halved]) - 100) <= 1
    assert 4.5 < lengths[~halved].std() < 5.7
    again = PTBChar(T=100, random_bptt=True, seed=4)
    assert np.array_equal(again.lengths(2), np.split(lengths, 3)[2])
    assert not np.array_equal(PTBChar(T=100, random_bptt=True, seed=5).lengths(2), again.lengths(2))


@pytest.mark.parametrize("variant", ["paper", "code"])
@pytest.mark.parametrize("split", ["train", "val"])
def test_zero_windows_do_not_overlap_and_lie_as_in_sgornn_s_code(split: str, variant: str) -> None:
    task = Counting(T=25, batch_size=10, eval_batch_size=10, windows="zero", variant=variant)
    assert not task.carries_state
    windows, batches = (task.tokens[split] - 1) // 25, passes(task, split)
    for b, (x, target) in enumerate(batches):
        assert torch.equal(target, x + 1)
        for r, row in enumerate(x):
            first = (b + r * len(batches)) * 25
            assert torch.equal(row, torch.arange(first, first + 25))
    kept = windows // 10 * 10 if variant == "code" else windows
    seen = torch.cat([x.flatten() for x, _ in batches])
    assert torch.equal(seen.sort().values, torch.arange(kept * 25))


def test_sgornn_s_counts() -> None:
    task = PTBWord(T=300, windows="zero", variant="code", batch_size=100, eval_batch_size=100)
    assert [task.batches(split) for split in ("train", "val", "test")] == [30, 2, 2]
    every = PTBWord(T=300, windows="zero", batch_size=100, eval_batch_size=1)
    assert [every.batches(split) for split in ("train", "val", "test")] == [31, 245, 274]


def test_ncgru_s_windows_are_random_in_columns_and_start_from_zero() -> None:
    task = Counting(T=30, batch_size=7, windows="zero", random_bptt=True)
    assert not task.carries_state
    x = torch.cat([x for x, _ in passes(task, "train")], dim=1)
    assert torch.equal(x.flatten(), torch.arange(7 * ((4099 - 1) // 7)))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"T": 9, "random_bptt": True}, "T=9 is too short"),
        ({"T": 100_000}, "task.batch_size=20 windows of T=100000"),
        ({"T": 70, "eval_batch_size": 60_000}, "task.eval_batch_size=60000"),
        ({"T": 300, "windows": "zero", "variant": "code", "eval_batch_size": 250}, "val text"),
    ],
)
def test_windows_that_do_not_fit_are_refused(options: dict, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        PTBWord(**options)


def test_metrics_are_nats_and_their_perplexity_or_bits() -> None:
    task, y = PTBWord(), torch.zeros(3, 5, 10_000)
    target = torch.randint(10_000, (3, 5))
    means = {name: float(value) for name, value in task.measure(y, target).items()}
    found = task.summarise(means)
    assert found["loss"] == pytest.approx(math.log(10_000))
    assert found["perplexity"] == pytest.approx(10_000, rel=1e-4)
    assert task.weight(target) == 15
    assert set(found) == set(task.metrics)
    assert PTBChar().summarise({"loss": math.log(2)}) == {"loss": math.log(2), "bpc": 1.0}
    assert math.isfinite(task.summarise({"loss": 1e6})["perplexity"])


@pytest.mark.parametrize(("task", "size"), [(PTBWord, 10_000), (PTBChar, 50)])
def test_sizes_are_known_without_the_data(task: type[Language], size: int) -> None:
    built = task(data_root="/nowhere")
    assert built.input_size == built.output_size == size
    assert built.batches("train") > 0


@pytest.mark.data
@pytest.mark.parametrize("cls", [PTBWord, PTBChar])
def test_the_baseline_is_the_unigram_model_on_the_real_files(cls: type[Language]) -> None:
    task = cls(data_root=os.environ["ORTHOBENCH_DATA"])
    task.check()
    train, test = (task._data[split].numpy() for split in ("train", "test"))
    shares = np.bincount(train, minlength=task.output_size) / len(train)
    loss = -np.log(shares[test]).mean()
    assert task.baseline == pytest.approx(task.summarise({"loss": loss}), abs=1e-3)
    assert task.baseline["loss"] == pytest.approx(loss, abs=1e-6)
    assert {split: len(text) for split, text in task._data.items()} == cls.tokens


@pytest.mark.data
@pytest.mark.parametrize("workers", [0, 1])
def test_batches_do_not_depend_on_workers(workers: int) -> None:
    task = PTBChar(data_root=os.environ["ORTHOBENCH_DATA"], T=50, random_bptt=True, num_workers=workers)
    loader = TaskData(task, 5, task.batches("train")).train_dataloader()
    for index, (x, target) in zip(range(5, 8), loader, strict=False):
        expected = task.batch("train", 0, index)
        assert torch.equal(x, expected[0])
        assert torch.equal(target, expected[1])
