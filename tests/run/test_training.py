"""Short runs that really learn, on drawn and on real data."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch

import orthobench
from orthobench.errors import ConfigError
from orthobench.tasks.drawn.adding import Adding
from tests.conftest import DATA


@pytest.mark.data
@pytest.mark.parametrize("task", ["mnist", "pmnist"])
def test_scornn_learns_mnist_from_the_real_files(task: str) -> None:
    """28 pixels per step; the accuracy of guessing is 0.11, and 150 steps reach about 0.7 (0.5 for permuted pixels)."""
    words = ("model=scornn", f"task={task}", "T=28", "model.hidden_size=64", f"data_root={DATA}")
    exp = orthobench.build(
        *words, "trainer.max_steps=150", "trainer.val_check_interval=150", "optimizer.lr_recurrent=1e-3"
    )
    record = exp.run()
    assert record["metrics"]["last"]["val/accuracy"] > 0.4
    assert record["metrics"]["last"]["test/accuracy"] > 0.4
    assert record["orthogonality"]["max"] < 1e-4


def test_scornn_beats_the_copying_baseline() -> None:
    words = ("model=scornn", "task=copying", "T=50", "model.hidden_size=64")
    record = orthobench.build(*words, "trainer.max_steps=400", "trainer.val_check_interval=200").run()
    assert record["metrics"]["last"]["test/loss"] < 0.7 * record["baseline"]["loss"]
    assert record["crossed"]["baseline"] in (200, 400)


def test_lstm_learns_to_add() -> None:
    words = ("model=lstm", "task=adding", "T=10", "recipe=none", "model.hidden_size=32", "optimizer.lr=1e-2")
    record = orthobench.build(*words, "trainer.max_steps=400", "trainer.val_check_interval=400").run()
    assert record["metrics"]["last"]["test/loss"] < 0.1 * record["baseline"]["loss"]


@pytest.mark.parametrize("limit", [None, "0.5", "2", "1e-9"])
def test_a_validation_scores_as_much_of_the_test_set_as_it_is_limited_to(limit: str | None, tmp_path: Path) -> None:
    """Of a paper that selects on the test set a validation reads both, and the sets differ in size."""
    words = ("task.val_size=20", "task.test_size=60", "task.eval_batch_size=10", "task.select_on_test=true")
    limits = () if limit is None else (f"trainer.limit_val_batches={limit}", f"trainer.limit_test_batches={limit}")
    sizes = ("model.hidden_size=8", "T=5", "trainer.max_steps=2", "trainer.val_check_interval=2")
    exp = orthobench.build("model=rnn", "task=copying", "recipe=none", *sizes, *words, *limits, f"runs_root={tmp_path}")
    metrics = exp.run()["metrics"]
    assert metrics["best_test"]["test/loss"] == metrics["last"]["test/loss"]


@contextmanager
def other_defaults() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(3)
    yield
    torch.set_default_dtype(torch.float32)
    assert torch.get_num_threads() == 3
    torch.set_num_threads(threads)


@pytest.mark.parametrize(
    "mode",
    [lambda: torch.autocast("cpu", torch.bfloat16), torch.inference_mode, lambda: torch.device("meta"), other_defaults],
)
def test_modes_of_the_program_around_do_not_reach_a_run(mode: Callable[[], Any], tmp_path: Path) -> None:
    words, found = ("model=scornn", "task=adding", "T=5", "model.hidden_size=4", "trainer.max_steps=2"), []
    for number, around in enumerate((nullcontext, mode)):
        with around():
            found.append(orthobench.build(*words, "task.val_size=8", f"runs_root={tmp_path / str(number)}").run())
    assert found[0]["metrics"] == found[1]["metrics"]


def test_a_metric_of_some_batches_alone_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = iter(({"loss": torch.ones(())}, {"loss": torch.ones(()), "recall": torch.ones(())}))
    monkeypatch.setattr(Adding, "measure", lambda *_: next(found))
    words = ("model=gru", "task=adding", "T=5", "model.hidden_size=4", "trainer.max_steps=2", f"runs_root={tmp_path}")
    with pytest.raises(ConfigError, match="`measure` has recall in some batches alone"):
        orthobench.build(*words, "task.val_size=8", "task.eval_batch_size=4").run()
