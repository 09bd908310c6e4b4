"""Settings, sweeps and lists of seeds that no machine could carry out are refused in one sentence, before any work."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from orthobench.__main__ import main

SHORT = ["task=copying", "T=10", "recipe=none", "trainer.max_steps=1"]
MODELS = (
    *(("model=" + name, f"model.hidden_size={size}") for name in ("rnn", "scornn", "lstm", "urnn_full", "ncgru")
      for size in (10**6, 10**9, 10**12, 10**18)),
    *(("model=" + name, "model.hidden_size=1e12") for name in ("lru", "mingru", "rotation", "lru_block", "unicornn")),
    *(("model=" + name, f"model.layers={layers}") for name in ("rnn", "lru_block") for layers in (10**9, 10**15)),
    ("model=rnn", "model.embedding_size=1000000000000"),
    ("model=rnn", "model.layer_sizes=[1000000000000,4]"),
    ("model=rnn", "params=1000000000000000"),
    ("model=rnn", "task.batch_size=1000000000000"),
    ("model=rnn", "T=1000000000000"),
    ("model=rnn", "seed=18446744073709551616"),
    ("model=rnn", f"seed={'9' * 4000}"),
    ("model=rnn", f"model.hidden_size={'9' * 5000}"),
    ("model=rnn", "model.hidden_size=" + "[" * 3000 + "]" * 3000),
    ("model=rnn", "model.hidden_size=[" + "1," * 20000 + "1]"),
    ("model=rnn", "model.hidden_size=1e400"),
    ("model=vprnn", "model.k=1000000000000"),
)  # fmt: skip
SWEEPS = (
    ("seed=range(1000000000)",),
    ("seed=range(0,1e300)",),
    ("seed=range(0,1,1e-12)",),
    ("seed=range(0,1,1e-320)",),
    ("seed=range(1,2,0)",),
    ("seed=range(1000000000,0,-1)",),
    ("seed=range(50000)", "model.hidden_size=range(1,50000)"),
    ("T=range(1,1000)", "model.hidden_size=range(1,1000)", "seed=range(1000)"),
    ("seed=shuffle(range(1000000000))",),
    ("model.hidden_size=sort(range(1000000000))",),
    ("model=rnn,lstm", "seed=range(60000)"),
)
TABLES = (
    ["reproduce", "sgornn/table2", "--seeds", "1000000000"],
    ["reproduce", "sgornn/table2", "--seeds", "1..1000000000"],
    ["reproduce", "sgornn/table2", "--seeds", "9" * 5000],
    ["reproduce", "sgornn/table2", "--seeds", "\N{SUPERSCRIPT TWO}"],
    ["plan", "sgornn/table2", "--seeds", "1..1000000000000"],
    ["plan", "-m", *SHORT, "seed=range(1000000000)"],
    ["-m", "experiment=sgornn/table2", "seed=range(1000000000)"],
    ["-m", "experiment=range(1000000000)"],
    ["show", *SHORT, "model.hidden_size=1000000000"],
)

NUMBERS = (
    "T", "timeout", "params", "model.hidden_size", "model.layers", "model.embedding_size", "model.modrelu_bias",
    "model.negative_slope", "model.recurrent_gradient_clip", "task.train_size", "task.val_size", "task.test_size",
    "task.epoch_batches", "task.batch_size", "task.eval_batch_size", "task.num_workers", "optimizer.lr",
    "optimizer.eps", "optimizer.weight_decay", "trainer.max_epochs", "trainer.val_check_interval",
    "trainer.log_every_n_steps", "trainer.accumulate_grad_batches", "stopping.patience", "stopping.threshold",
    "diagnostics.jacobian",
)  # fmt: skip
VALUES = {
    "not a number": "nan",
    "infinite": "inf",
    "too large for a float": "1e300",
    "of 5,000 digits": "9" * 5000,
    "true": "true",
    "a mapping": "{a: 1}",
    "a word": "'x y'",
    "a list of lists": "[[1]]",
}


@pytest.fixture
def refused(here: Path, capsys: pytest.CaptureFixture[str]) -> Callable[[list[str]], None]:
    def check(words: list[str]) -> None:
        began = time.process_time()
        assert main(words) == 2
        assert time.process_time() - began < 20, (
            "no number of seconds is a test of speed; what is listed takes for ever"
        )
        told = capsys.readouterr().err
        assert told.count("\n") == 1
        assert len(told) < 5000
        assert not (here / "runs").exists()

    return check


@pytest.mark.sampled(16)
@pytest.mark.parametrize("words", MODELS, ids=lambda words: " ".join(words)[:60])
def test_a_run(words: tuple[str, ...], refused: Callable[[list[str]], None]) -> None:
    refused([*SHORT, *words])


@pytest.mark.parametrize("words", SWEEPS, ids=lambda words: " ".join(words))
@pytest.mark.sampled(4)
def test_a_sweep(words: tuple[str, ...], refused: Callable[[list[str]], None]) -> None:
    refused(["-m", *SHORT, *words])


@pytest.mark.parametrize("words", TABLES, ids=lambda words: " ".join(words)[:60])
def test_seeds(words: list[str], refused: Callable[[list[str]], None]) -> None:
    refused(words)


@pytest.mark.sampled(18)
@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("name", NUMBERS)
def test_a_value(name: str, kind: str, refused: Callable[[list[str]], None]) -> None:
    words = [word for word in SHORT if not word.startswith(f"{name}=")]
    refused(["show", *words, "model=rnn", f"{name}={VALUES[kind]}"])


@pytest.mark.parametrize("count", [-1, 257, 10**6, 10**18])
def test_workers(count: int, refused: Callable[[list[str]], None]) -> None:
    """Each is a process, so that a configuration could start as many as the system holds."""
    refused([*SHORT, "model=rnn", f"task.num_workers={count}"])
