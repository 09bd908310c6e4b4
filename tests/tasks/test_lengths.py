from typing import Any

import pytest
import torch

import orthobench
from orthobench.errors import ConfigError
from orthobench.tasks.drawn.adding import Adding
from orthobench.tasks.drawn.copying import Copying
from orthobench.tasks.drawn.cued_copying import CuedCopying
from orthobench.tasks.drawn.denoise import Denoise
from orthobench.tasks.drawn.kth_largest import KthLargest
from orthobench.tasks.drawn.modular_arithmetic import ModularArithmetic
from orthobench.tasks.drawn.parity import Parity
from orthobench.tasks.drawn.recall import Recall
from orthobench.tasks.lengths import Lengths, span
from orthobench.tasks.real.noisy_mnist import NoisyMNIST

FIXED = [Adding, Copying, Denoise, Recall, NoisyMNIST]


@pytest.mark.parametrize("cls", FIXED)
def test_a_fixed_length_becomes_the_one_that_is_asked_for(cls: type[Lengths]) -> None:
    given: dict[str, Any] = {"seed": 5, "batch_size": 7, "eval_batch_size": 9, "eval_lengths": [64, 128]}
    there = cls(T=50, **given).at_length(64)
    assert (there.T, there.seed, there.batch_size, there.eval_batch_size) == (64, 5, 7, 9)
    assert there.baseline == cls(T=64).baseline


@pytest.mark.parametrize(("cls", "length", "low"), [(Parity, 80, "length"), (CuedCopying, 80, "delay")])
def test_a_range_becomes_one_length(cls: Any, length: int, low: str) -> None:
    there = cls(**{low: [10, 20]}, seed=5).at_length(length)
    assert there.span == (length, length)
    assert there.seed == 5


def test_a_positional_argument_is_kept() -> None:
    assert Recall(20, 4).at_length(30).output_size == 4


def test_the_test_split_at_a_length_is_nobodys_training_or_validation() -> None:
    own = Copying(T=30, seed=3, batch_size=20, eval_batch_size=20)
    tested = own.at_length(30).batch("test", 0, 0)[0]
    assert not any(torch.equal(tested, own.batch(split, 0, 0)[0]) for split in ("train", "val"))


def test_a_thousand_sequences_unless_another_size_is_asked_for() -> None:
    assert Parity().at_length(256).examples("test") == 1000
    assert Parity(test_size=70).at_length(256).examples("test") == 70


@pytest.mark.parametrize(
    ("cls", "lengths", "reason"),
    [
        (Adding, [400, 2], "no test at length 2: T=2 is too short"),
        (ModularArithmetic, [41, 80], "no test at length 80: .*odd"),
        (NoisyMNIST, [27], "no test at length 27: .*>= 28"),
        (Parity, [0], "no test at length 0: .*>= 1"),
        (KthLargest, [50], "kth_largest has no test at length 50"),
    ],
)
def test_a_length_that_a_task_does_not_have_is_refused_at_once(cls: type, lengths: list[int], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        cls(eval_lengths=lengths)


def test_eval_lengths_are_checked_as_every_setting() -> None:
    with pytest.raises(ConfigError, match=r"task\.eval_lengths\[1\]=0 is out of range"):
        orthobench.build("task=parity", "task.eval_lengths=[40,0]")
    with pytest.raises(ConfigError, match=r"task\.eval_lengths=40 must be a list"):
        orthobench.build("task=parity", "task.eval_lengths=40")


@pytest.mark.parametrize(
    ("word", "same"),
    [("eval_lengths=[]", True), ("marker=true", True), ("eval_lengths=[50]", False), ("marker=false", False)],
)
def test_a_setting_changes_a_run_id_where_it_has_another_value_than_before_it(word: str, same: bool) -> None:
    ids = [orthobench.build("task=copying", *words).run_id for words in ((), (f"task.{word}",))]
    assert (ids[0] == ids[1]) == same


def test_files_that_are_read_as_they_are_stay_so_at_other_lengths() -> None:
    task = Copying(T=30)
    task.verify = False
    assert not task.at_length(60).verify
    assert Copying(T=30).at_length(60).verify


@pytest.mark.parametrize("task", ["copying", "cued_copying"])
def test_without_a_marker_nothing_can_be_trained(task: str) -> None:
    with pytest.raises(ConfigError, match=r"task\.marker=false leaves nothing to be learnt: `orthobench eval RUN"):
        orthobench.build("model=gru", f"task={task}", "task.marker=false", "model.hidden_size=2").run()


@pytest.mark.parametrize("given", [(40, 10), (5,), (5, 6, 7), (0, 10)])
def test_what_is_no_range_is_refused(given: Any) -> None:
    with pytest.raises(ConfigError, match=r"task\.delay=\[.*\] is no range: it must be two whole numbers >= 1"):
        span("delay", given)
