"""A run whose last step spoils the weights is diverged: no later step is there to find it."""

import itertools
import math
from contextlib import nullcontext
from pathlib import Path

import pytest

import orthobench
from orthobench.__main__ import main
from orthobench.errors import DivergedError
from orthobench.recording.digest import final
from orthobench.run.callbacks.finite import Finite
from orthobench.run.learner import Learner

SMALL = (
    "model=rnn", "task=adding", "T=6", "recipe=none", "logger=none", "model.hidden_size=4", "task.val_size=20",
    "task.test_size=30", "task.batch_size=4",
)  # fmt: skip
WORDS = (*SMALL, "optimizer=sgd", "optimizer.lr=1e36")
HARMED = (*SMALL, "optimizer.lr=100", "trainer.max_steps=2", "trainer.val_check_interval=1")  # best after the first


@pytest.mark.parametrize("every", [1, 7], ids=["validated in training", "validated afterwards"])
def test_a_run_whose_only_step_spoils_the_weights(
    every: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (*WORDS, "trainer.max_steps=1", f"trainer.val_check_interval={every}", f"runs_root={tmp_path}")
    assert main([*words]) == 4
    printed = capsys.readouterr()
    assert "Traceback" not in printed.err
    assert "the val/loss of the final weights is " in printed.err
    exp = orthobench.build(*words)
    record = final(exp.settings.folder / "record.json")
    assert record is not None
    assert (record["status"], record["diverged"]["step"], record["steps"]) == ("diverged", 1, 1)
    assert record["metrics"]["best_val"] is None
    assert math.isfinite(record["diverged"]["last_loss"])
    assert not (exp.settings.folder / "checkpoints").exists(), "such weights are not saved"
    assert main([*words]) == 4
    assert "is diverged already" in capsys.readouterr().out


def spoiled(tests: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the loss of these tests, counted from 0, be no number."""
    inner, count = Learner.on_test_epoch_end, itertools.count()

    def spoil(self: Learner) -> None:
        inner(self)
        if next(count) in tests:
            self.results["test/loss"] = math.nan

    monkeypatch.setattr(Learner, "on_test_epoch_end", spoil)


def test_a_test_score_of_the_final_weights_that_is_no_number(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    spoiled((0,), monkeypatch)
    exp = orthobench.build(*HARMED, f"runs_root={tmp_path}")
    with pytest.raises(
        DivergedError, match="the test/loss of the final weights is nan at step 2; the last finite loss"
    ):
        exp.run()
    record = final(exp.settings.folder / "record.json")
    assert record is not None
    assert (record["status"], record["diverged"]["step"], record["best_step"]) == ("diverged", 2, 1)


def test_a_test_score_of_the_best_weights_that_is_no_number(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spoiled((1,), monkeypatch)
    record = orthobench.build(*HARMED, f"runs_root={tmp_path}").run()
    assert (record["status"], record["metrics"]["best_val"]["test/loss"]) == ("done", None)
    assert "test loss not finite (baseline 0.1667) after 2 steps" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "found"), [("val/loss", True), ("val/accuracy", True), ("val/other", False), ("test/loss", True)]
)
def test_only_the_loss_and_the_headline_metric_decide(name: str, found: bool) -> None:
    scores = {"val/loss": 1.0, "val/accuracy": 0.5, "val/other": 2.0, name: -math.inf}
    finite, told = Finite(1), f"{name} of the final weights is -inf at step 9"
    with pytest.raises(DivergedError, match=told) if found else nullcontext():
        finite.look_at(scores, "accuracy", 9)
    assert finite.step == (9 if found else None)
