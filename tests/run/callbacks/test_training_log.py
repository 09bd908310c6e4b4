"""The clock of training, which a stop does not lose, and one line a step where gradients are accumulated."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import orthobench
from orthobench.recording.curve import Curve
from orthobench.run.callbacks.training import TrainingLog
from tests.run.callbacks.watching import SHORT, SMALL, common, names


def test_the_clock_counts_training_up_to_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    log, module = TrainingLog(*common(tmp_path, 10)), SimpleNamespace(results={})
    monkeypatch.setattr(log, "clock", lambda: now[0])

    def at(seconds: float, step: int) -> Any:
        now[0] = seconds
        return SimpleNamespace(global_step=step, loggers=[])

    log.on_train_start(at(100.0, 0), module)  # type: ignore[arg-type]
    at(107.0, 3)
    assert log.state_dict() == {"train_s": 7.0}, "no line was due yet"
    log.on_validation_start(at(110.0, 5), module)  # type: ignore[arg-type]
    at(130.0, 5)
    assert log.state_dict() == {"train_s": 10.0}, "a validation is no training"
    log.on_validation_end(at(140.0, 5), module)  # type: ignore[arg-type]
    at(142.0, 6)
    resumed = TrainingLog(*common(tmp_path, 10))
    resumed.load_state_dict(log.state_dict())
    assert (resumed.train_s, resumed.spent_s) == (12.0, 12.0)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("model=scornn",), "orthogonality"),
        (("model=scornn", "diagnostics.singular_values=true"), "singular_value_margin"),
        (("model=ncgru",), "neumann_norm"),
        (("model=sgornn",), "alpha"),
        (("model=scornn",), "train/loss"),
    ],
)
def test_a_step_over_several_batches_has_one_line(words: tuple[str, ...], name: str) -> None:
    exp = orthobench.build(*SMALL, *SHORT, *words, "trainer.accumulate_grad_batches=3", "trainer.val_check_interval=3")
    exp.run()
    curve = Curve(exp.settings.folder / "metrics.csv")
    steps = [step for step, _ in curve.of(name)]
    assert steps == sorted(set(steps))
    assert steps[-3:] == [2, 4, 6]
    assert {"val/loss"} <= names(curve)
    assert [step for step, _ in curve.of("val/loss")] == [3, 6], "counted in steps, not in batches"


def test_the_loss_of_a_step_is_the_mean_over_its_batches() -> None:
    words = (
        *SMALL,
        "model=rnn",
        "task.val_size=8",
        "task.test_size=8",
        "trainer.max_steps=1",
        "trainer.log_every_n_steps=1",
    )
    exp = orthobench.build(*words, "trainer.accumulate_grad_batches=3")
    task, model = exp.task, exp.model
    batches = [task.batch("train", 0, index) for index in range(3)]
    with torch.no_grad():
        losses = [float(task.loss(model(x)[0], *rest)) for x, *rest in batches]
    exp.run()
    ((_, told),) = Curve(exp.settings.folder / "metrics.csv").of("train/loss")
    assert told == pytest.approx(sum(losses) / 3, rel=1e-5)
