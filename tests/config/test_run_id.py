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
        *(f"logger={name}" for name in ("wandb", "none")),
        *(f"{root}=/elsewhere" for root in ("data_root", "runs_root", "results_root")),
        *("engine=reference", "force=true", "task.num_workers=2", "diagnostics.hidden_gradients=[1,2]"),
        *("model.hidden_size=190.0", "model.layers=1", "params=21764", "recipe=scornn/copying"),
        *(f"optimizer.lr={lr}" for lr in ("1e-3", "0.001", "0.0010")),
        *(f"model.rho={rho}" for rho in ("95", "95.0", "0.5")),
        *("seed=1", "++seed=1"),
        *(f"trainer.precision={precision}" for precision in ("32", "32-true")),
        *(f"trainer.check_val_every_n_epoch={n}" for n in (1, 2)),
        *(f"trainer.limit_{split}_batches=1.0" for split in ("train", "val", "test")),
        *(f"trainer.{name}=5" for name in ("min_steps", "min_epochs", "log_every_n_steps")),
        *(f"trainer.{word}" for word in ("accelerator=cpu", "devices=auto", "profiler=simple", "deterministic=true")),
        *(f"trainer.{word}" for word in ("max_steps=10000.0", "accumulate_grad_batches=1")),
        "trainer.gradient_clip_algorithm=value",
    ],
)
@pytest.mark.sampled(6)
def test_does_not_change_with(words: str) -> None:
    assert run_id(words) == run_id()


@pytest.mark.parametrize(
    "word",
    [
        *("seed=2", "T=41", "variant=paper", "model=lstm", "task=adding", "recipe=none", "schedule=linear"),
        *(f"model.{word}" for word in ("hidden_size=191", "rho=96", "activation=relu", "recurrent=free")),
        *(f"model.{word}" for word in ("layers=2", "dropout=0.1")),
        *(f"task.{word}" for word in ("batch_size=21", "train_size=200", "val_size=200", "test_size=200")),
        *("optimizer=sgd", *(f"optimizer.{word}" for word in ("lr=2e-3", "lr_recurrent=2e-3", "decay=0.8"))),
        *(f"trainer.limit_{split}_batches=5" for split in ("train", "val", "test")),
        *(f"trainer.{word}" for word in ("max_steps=9999", "max_epochs=1", "precision=64-true")),
        *(f"trainer.{word}" for word in ("gradient_clip_val=1.0", "accumulate_grad_batches=2")),
        "trainer.val_check_interval=77",
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
    for name in ("val_check_interval", "limit_val_batches"):  # one step is not one epoch
        assert run_id(f"trainer.{name}=1") != run_id(f"trainer.{name}=1.0")
    ids = [run_id(f"seed={seed}", f"T={T}") for seed in range(3) for T in (10, 20)]
    assert len(set(ids)) == len(ids)
