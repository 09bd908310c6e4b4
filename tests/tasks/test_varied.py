"""What holds for every task whose lengths are drawn for each sequence: sizes, masks, means, ranges and lengths."""

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import orthobench
from orthobench.errors import ConfigError
from orthobench.tasks.base import Batch
from orthobench.tasks.drawn.adding import Adding
from orthobench.tasks.drawn.copying import Copying
from orthobench.tasks.drawn.cued_copying import CuedCopying
from orthobench.tasks.drawn.cued_recall import CuedRecall
from orthobench.tasks.drawn.cycle import Cycle
from orthobench.tasks.drawn.denoise import Denoise
from orthobench.tasks.drawn.group_word import GroupWord
from orthobench.tasks.drawn.kth_largest import KthLargest
from orthobench.tasks.drawn.modular_arithmetic import ModularArithmetic
from orthobench.tasks.drawn.parity import Parity
from orthobench.tasks.drawn.recall import Recall
from orthobench.tasks.drawn.varied import Varied, whole
from orthobench.tasks.lengths import Lengths, span
from orthobench.tasks.real.noisy_mnist import NoisyMNIST

TASKS: list[type[Varied]] = [CuedCopying, CuedRecall, Parity, Cycle, ModularArithmetic, GroupWord]
every_task = pytest.mark.parametrize("cls", TASKS)


def make(cls: type[Varied], **kwargs: Any) -> Varied:
    return cls(**{"seed": 3, "batch_size": 8, "eval_batch_size": 8, **kwargs})


def same(a: Batch, b: Batch) -> bool:
    return all(torch.equal(u, v) for u, v in zip(a, b, strict=True))


@every_task
@pytest.mark.parametrize("split", ["train", "val", "test"])
def test_a_sequence_does_not_depend_on_the_size_of_a_batch(cls: type[Varied], split: Any) -> None:
    small, large = make(cls, batch_size=5, eval_batch_size=6), make(cls, batch_size=20, eval_batch_size=500)
    parts = [small.batch(split, 1, index) for index in range(3)]
    joined = tuple(torch.cat(part) for part in zip(*parts, strict=True))
    assert same(joined, tuple(a[: len(joined[0])] for a in large.batch(split, 1, 0)))


@every_task
def test_a_later_batch_does_not_depend_on_what_is_drawn_together(cls: type[Varied]) -> None:
    small, large = make(cls, batch_size=5), make(cls, batch_size=1000)
    assert same(small.batch("train", 0, 399), tuple(a[995:1000] for a in large.batch("train", 0, 1)))


@every_task
def test_shapes_and_types(cls: type[Varied]) -> None:
    own = make(cls)
    x, target, mask = own.batch("train", 0, 0)
    assert x.shape == target.shape == mask.shape == (8, own.length)
    assert (x.dtype, target.dtype, mask.dtype) == (torch.int64, torch.int64, torch.float32)
    x, target, mask = own.sample(2000, 1)
    assert set(x.unique().tolist()) == set(range(own.input_size))
    assert (target >= 0).all()
    assert (target < own.output_size).all()
    assert (mask.sum(1) >= 1).all()
    assert mask.sum(1).max() == own.answers


@every_task
def test_every_sequence_counts_once(cls: type[Varied]) -> None:
    own = make(cls)
    _, target, mask = own.sample(6, 1)
    y = torch.from_numpy(np.random.default_rng(2).normal(size=(*target.shape, own.output_size)))
    p = torch.log_softmax(y, -1).numpy()
    losses, right = [], []
    for row in range(6):
        due = [t for t in range(own.length) if mask[row, t]]
        counted = range(own.length) if cls is CuedCopying else due
        losses.append(np.mean([-p[row, t, target[row, t]] for t in counted]))
        right.append(np.mean([int(p[row, t].argmax()) == int(target[row, t]) for t in due]))
    found = own.measure(y, target, mask)
    assert float(found["loss"]) == pytest.approx(np.mean(losses), rel=1e-6)
    assert float(found["accuracy"]) == pytest.approx(np.mean(right), rel=1e-6)
    assert float(found["score"]) == pytest.approx((np.mean(right) - own.chance) / (1 - own.chance), abs=1e-6)


@every_task
def test_metrics_are_declared_and_within_their_bounds(cls: type[Varied]) -> None:
    own = make(cls)
    _, target, mask = own.sample(20, 1)
    right = F.one_hot(target, own.output_size).float()
    best, worst = own.measure(right, target, mask), own.measure(right.roll(1, -1), target, mask)
    assert (own.baseline["score"], own.baseline["accuracy"]) == (0, own.chance)
    assert tuple(best) == own.metrics
    for name in own.metrics:
        metric = own.metric_of(name)
        low, high = metric.bounds
        assert metric.direction == ("lower" if name == "loss" else "higher")
        if name != "loss":
            assert float(best[name]) == pytest.approx(high, rel=1e-6)  # float32
            assert float(worst[name]) < float(best[name])
            assert low is None or float(worst[name]) == pytest.approx(low, abs=1e-6)


@every_task
def test_members_of_an_ensemble_are_scored_at_once(cls: type[Varied]) -> None:
    own = make(cls)
    batches = [own.sample(6, seed)[1:] for seed in (1, 2)]
    ys = torch.randn(2, 6, own.length, own.output_size, generator=torch.Generator().manual_seed(0))
    targets, masks = (torch.stack(parts) for parts in zip(*batches, strict=True))
    together = torch.vmap(own.measure)(ys, targets, masks)
    for i, (y, batch) in enumerate(zip(ys, batches, strict=True)):
        for name, value in own.measure(y, *batch).items():
            assert float(together[name][i]) == pytest.approx(float(value), abs=1e-6)


@pytest.mark.parametrize("u", [0.0, 0.5, 1 - 2**-53])
@pytest.mark.parametrize(("low", "high"), [(0, 2), (1, 8), (3, 40), (10, 10), (0, 6)])
def test_uniform_numbers_become_whole_ones_of_the_range(u: float, low: int, high: int) -> None:
    expected = {0.0: low, 0.5: (low + high + 1) // 2, 1 - 2**-53: high}[u]
    assert whole(np.array([u]), low, high).tolist() == [expected]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("task=parity", "task.length=[40,3]"), r"task\.length=\[40,3\] is no range"),
        (("task=cycle", "task.length=[3]"), r"task\.length=\[3\] is no range"),
        (("task=parity", "task.length=40"), r"task\.length=40 must be a list"),
        (("task=parity", "task.length=[0,40]"), r"task\.length\[0\]=0 is out of range"),
        (("task=parity", "task.labels=first"), r"task\.labels='first' is not known: .*every"),
        (("task=modular_arithmetic", "task.length=[4,39]"), r"task\.length=\[4,39\]: lengths must be odd"),
        (("task=group_word", "task.group=a6"), r"task\.group='a6' is not known: allowed: a4xz5, a5, s3, s4, s5, z60"),
        (("task=group_word", "task.labels=last"), r"task\.labels does not apply to task=group_word"),
        (("task=cued_copying", "task.delay=[40,10]"), r"task\.delay=\[40,10\] is no range"),
        (("task=cued_copying", "task.digits=0"), r"task\.digits=0 is out of range"),
        (("task=cued_copying", "task.onset=-1"), r"task\.onset=-1 is out of range"),
        (("task=cued_copying", "T=50"), r"T=50 does not apply to task=cued_copying, so leave it out: .*task\.delay"),
        (("task=parity", "T=50"), r"T=50 does not apply to task=parity, .*task\.length"),
        (("task=cued_recall", "task.pairs=[9,4]"), r"task\.pairs=\[9,4\] is no range"),
        (("task=cued_recall", "task.pairs=[4,40]"), r"needs as many keys: task\.keys=32 must be >= 40"),
        (("task=cued_recall", "task.length=[40,90]"), r"too short for 16 pairs: its lower end must be >= 48"),
        (("task=noisy_mnist", "T=20"), r"T=20 is too short for noisy_mnist: it must be >= 28"),
        (("task=parity", "task.eval_lengths=[40,0]"), r"task\.eval_lengths\[1\]=0 is out of range"),
        (("task=parity", "task.eval_lengths=40"), r"task\.eval_lengths=40 must be a list"),
    ],
)
@pytest.mark.sampled(6)
def test_bad_settings_are_refused(words: tuple[str, ...], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        orthobench.build("model=gru", "recipe=none", *words)


@pytest.mark.parametrize("cls", [Adding, Copying, Denoise, Recall, NoisyMNIST])
def test_a_fixed_length_becomes_the_one_that_is_asked_for(cls: type[Lengths]) -> None:
    given: dict[str, Any] = {"seed": 5, "batch_size": 7, "eval_batch_size": 9, "eval_lengths": [64, 128]}
    there = cls(T=50, **given).at_length(64)
    assert (there.T, there.seed, there.batch_size, there.eval_batch_size) == (64, 5, 7, 9)
    assert there.baseline == cls(T=64).baseline


@pytest.mark.parametrize(("cls", "name"), [(Parity, "length"), (CuedCopying, "delay")])
def test_a_range_becomes_one_length(cls: Any, name: str) -> None:
    there = cls(**{name: [10, 20]}, seed=5).at_length(80)
    assert (there.span, there.seed) == ((80, 80), 5)


def test_at_another_length_all_else_is_kept() -> None:
    assert Recall(20, 4).at_length(30).output_size == 4
    task = Copying(T=30)
    assert task.at_length(60).verify
    task.verify = False  # files are read as they are
    assert not task.at_length(60).verify
    assert Parity().at_length(256).examples("test") == 1000
    assert Parity(test_size=70).at_length(256).examples("test") == 70


def test_the_test_split_at_a_length_is_nobodys_training_or_validation() -> None:
    own = Copying(T=30, seed=3, batch_size=20, eval_batch_size=20)
    tested = own.at_length(30).batch("test", 0, 0)[0]
    assert not any(torch.equal(tested, own.batch(split, 0, 0)[0]) for split in ("train", "val"))


@pytest.mark.parametrize(
    ("cls", "lengths", "reason"),
    [
        (Adding, [400, 2], "no test at length 2, .*: T=2 is too short"),
        (ModularArithmetic, [41, 80], "no test at length 80, .*odd"),
        (NoisyMNIST, [27], "no test at length 27, .*>= 28"),
        (Parity, [0], "no test at length 0, .*>= 1"),
        (KthLargest, [50], "kth_largest has no test at length 50"),
    ],
)
def test_a_length_that_a_task_does_not_have_is_refused_at_once(cls: type, lengths: list[int], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        cls(eval_lengths=lengths)


@pytest.mark.parametrize(
    ("word", "same"),
    [("eval_lengths=[]", True), ("marker=true", True), ("eval_lengths=[50]", False), ("marker=false", False)],
)
def test_a_setting_changes_a_run_id_where_it_has_another_value_than_before_it(word: str, same: bool) -> None:
    ids = [orthobench.build("task=copying", *words).run_id for words in ((), (f"task.{word}",))]
    assert (ids[0] == ids[1]) == same


@pytest.mark.parametrize("task", ["copying", "cued_copying"])
def test_without_a_marker_nothing_can_be_trained(task: str) -> None:
    with pytest.raises(ConfigError, match=r"task\.marker=false leaves nothing to be learnt: `orthobench eval RUN"):
        orthobench.build("model=gru", f"task={task}", "task.marker=false", "model.hidden_size=2").run()


@pytest.mark.parametrize("given", [(40, 10), (5,), (5, 6, 7), (0, 10)])
def test_what_is_no_range_is_refused(given: Any) -> None:
    with pytest.raises(ConfigError, match=r"task\.delay=\[.*\] is no range: it must be two whole numbers >= 1"):
        span("delay", given)
