"""The run id: what changes the numbers, and nothing else."""

import re

import pytest

import orthobench

pytestmark = pytest.mark.sampled(12)

BASE = ("model=scornn", "task=copying", "T=40")


def run_id(*words: str) -> str:
    return orthobench.build(*BASE, *words).run_id


def test_form() -> None:
    assert re.fullmatch(r"copying-scornn-[0-9a-f]{10}", run_id())


@pytest.mark.parametrize(
    "words",
    [
        ("logger=wandb",),
        ("logger=none",),
        ("data_root=/elsewhere",),
        ("runs_root=/elsewhere",),
        ("results_root=/elsewhere",),
        ("trainer.accelerator=cpu",),
        ("trainer.log_every_n_steps=7",),
        ("trainer.deterministic=true",),
        ("engine=reference",),
        ("force=true",),
        ("task.num_workers=2",),
        ("diagnostics.hidden_gradients=[1,2]",),
        ("model.hidden_size=190.0",),
        ("optimizer.lr=1e-3",),
        ("optimizer.lr=0.001",),
        ("optimizer.lr=0.0010",),
        ("model.rho=95",),
        ("model.rho=95.0",),
        ("model.rho=0.5",),
        ("seed=1",),
        ("++seed=1",),
        ("trainer.max_steps=10000.0",),
        ("recipe=scornn/copying",),
        ("params=21764",),
        ("model.layers=1",),
        ("trainer.precision=32",),
        ("trainer.precision=32-true",),
        ("trainer.accumulate_grad_batches=1",),
        ("trainer.check_val_every_n_epoch=1",),
        ("trainer.check_val_every_n_epoch=2",),
        ("trainer.limit_train_batches=1.0",),
        ("trainer.limit_val_batches=1.0",),
        ("trainer.limit_test_batches=1.0",),
        ("trainer.gradient_clip_algorithm=value",),
        ("trainer.min_steps=5",),
        ("trainer.min_epochs=5",),
        ("trainer.devices=auto",),
        ("trainer.profiler=simple",),
    ],
)
@pytest.mark.sampled(6)
def test_does_not_change_with(words: tuple[str, ...]) -> None:
    assert run_id(*words) == run_id()


@pytest.mark.parametrize(
    "word",
    [
        "seed=2",
        "T=41",
        "variant=paper",
        "model.hidden_size=191",
        "model.rho=96",
        "model.activation=relu",
        "model.recurrent=free",
        "model.layers=2",
        "model.dropout=0.1",
        "model=lstm",
        "task=adding",
        "task.batch_size=21",
        "task.train_size=200",
        "task.val_size=200",
        "task.test_size=200",
        "optimizer.lr=2e-3",
        "optimizer.lr_recurrent=2e-3",
        "optimizer.decay=0.8",
        "optimizer=sgd",
        "schedule=linear",
        "trainer.max_steps=9999",
        "trainer.max_epochs=1",
        "trainer.precision=64-true",
        "trainer.gradient_clip_val=1.0",
        "trainer.accumulate_grad_batches=2",
        "trainer.limit_train_batches=5",
        "trainer.limit_val_batches=5",
        "trainer.limit_test_batches=5",
        "trainer.val_check_interval=77",
        "recipe=none",
    ],
)
@pytest.mark.sampled(6)
def test_changes_with(word: str) -> None:
    assert run_id(word) != run_id()


@pytest.mark.parametrize(
    ("words", "alike"),
    [
        (("trainer.precision=64",), ("trainer.precision=64-true",)),
        (("trainer.precision=bf16",), ("trainer.precision=bf16-mixed",)),
        (("trainer.max_time=00:01:30:00",), ("trainer.max_time={minutes:90}",)),
        (("trainer.gradient_clip_val=1", "trainer.gradient_clip_algorithm=norm"), ("trainer.gradient_clip_val=1.0",)),
    ],
)
def test_two_spellings_are_one_run(words: tuple[str, ...], alike: tuple[str, ...]) -> None:
    assert run_id(*words) == run_id(*alike) != run_id()


@pytest.mark.parametrize(
    ("base", "word"),
    [
        ("trainer.gradient_clip_val=1", "trainer.gradient_clip_algorithm=value"),
        ("trainer.max_time=00:01:30:00", "trainer.min_steps=5"),
        ("trainer.val_check_interval=1.0", "trainer.check_val_every_n_epoch=2"),
    ],
)
def test_what_has_an_effect_only_beside_another_setting(base: str, word: str) -> None:
    assert run_id(base, word) != run_id(base)


def test_does_not_depend_on_the_order_of_words() -> None:
    words = ("seed=3", "model.rho=0.3", "optimizer.lr=2e-3")
    assert run_id(*words) == run_id(*reversed(words))


def test_one_step_is_not_one_epoch() -> None:
    assert run_id("trainer.val_check_interval=1") != run_id("trainer.val_check_interval=1.0")
    assert run_id("trainer.limit_val_batches=1") != run_id("trainer.limit_val_batches=1.0")


def test_all_changes_are_different_from_each_other() -> None:
    ids = [run_id(f"seed={seed}", f"T={T}") for seed in range(3) for T in (10, 20)]
    assert len(set(ids)) == len(ids)
