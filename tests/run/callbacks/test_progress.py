"""The progress bar: as wide as the terminal, and left alone when a run is stopped."""

import io
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from orthobench.run.callbacks.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def module(steps: int | None = 10_000) -> Any:
    task = SimpleNamespace(metric="accuracy", baseline={"loss": 0.09452})
    loss, duration = torch.tensor(0.0611), SimpleNamespace(steps=steps)
    return SimpleNamespace(duration=duration, loss=loss, task=task, results={"val/accuracy": 0.9731})


def screen(monkeypatch: pytest.MonkeyPatch, columns: int) -> Terminal:
    """A terminal in place of standard error; made in the test's body, as pytest sets its own between phases."""
    made = Terminal()
    monkeypatch.setattr(sys, "stderr", made)
    monkeypatch.setenv("COLUMNS", str(columns))
    return made


def drawn(columns: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """The last line that the bar draws at a width."""
    shown = screen(monkeypatch, columns)
    progress, trainer, learner = Progress(), SimpleNamespace(global_step=0), module()
    progress.on_train_start(trainer, learner)  # type: ignore[arg-type]
    trainer.global_step = 8400
    progress.on_train_batch_end(trainer, learner)  # type: ignore[misc,arg-type]
    line = shown.getvalue().split("\r")[-1].rstrip()
    progress.on_exception(trainer, learner, KeyboardInterrupt())  # type: ignore[arg-type]
    return line


@pytest.mark.parametrize("stream", [None, SimpleNamespace(write=len)])
def test_standard_error_that_is_no_file_has_no_bar(stream: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", stream)
        Progress().on_train_start(SimpleNamespace(global_step=0), module())  # type: ignore[arg-type]


@pytest.mark.parametrize("columns", [24, 48, 80, 120])
def test_a_line_fits_its_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    line = drawn(columns, monkeypatch)
    assert "84%" in line
    assert "8400/10000" in line
    assert len(line) <= max(columns, 30)


def test_what_is_shown_first_is_the_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "loss 0.0611" in drawn(48, monkeypatch)
    assert drawn(112, monkeypatch).rstrip("]").endswith("baseline 0.09452"), "no part is cut in the middle"
    wide = drawn(140, monkeypatch)
    assert "baseline 0.09452, val accuracy 0.9731" in wide
    assert "█" in wide or "#" in wide


@pytest.mark.parametrize(
    ("steps", "every", "end", "lines"), [(50, 1, 50, 21), (50, 5, 50, 10), (2000, 100, 2000, 20), (None, 1, 500, 25)]
)
def test_many_validations_have_few_lines(
    steps: int | None, every: int, end: int, lines: int, capsys: pytest.CaptureFixture[str]
) -> None:
    progress, trainer, learner = Progress(), SimpleNamespace(global_step=0), module(steps)
    progress.on_train_start(trainer, learner)  # type: ignore[arg-type]
    for trainer.global_step in range(every, end + 1, every):
        progress.on_validation_end(trainer, learner)  # type: ignore[arg-type]
    progress.teardown(trainer, learner, "fit")  # type: ignore[arg-type]
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith(f"step {every}/")
    assert said[-1].startswith(f"step {end}/")
    assert len(said) == len({*said}) == lines


def test_the_last_validation_of_a_run_that_is_stopped_has_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    progress, trainer, learner = Progress(), SimpleNamespace(global_step=0), module()
    progress.on_train_start(trainer, learner)  # type: ignore[arg-type]
    for trainer.global_step in (1, 2, 3):
        progress.on_validation_end(trainer, learner)  # type: ignore[arg-type]
    progress.on_exception(trainer, learner, KeyboardInterrupt())  # type: ignore[arg-type]
    progress.teardown(trainer, learner, "fit")  # type: ignore[arg-type]
    assert [line.split("/")[0] for line in capsys.readouterr().out.splitlines()] == ["step 1", "step 3"]


def test_a_stopped_bar_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = screen(monkeypatch, 80)
    progress, trainer, learner = Progress(), SimpleNamespace(global_step=3), module()
    progress.on_train_start(trainer, learner)  # type: ignore[arg-type]
    progress.on_exception(trainer, learner, KeyboardInterrupt())  # type: ignore[arg-type]
    before = shown.getvalue()
    progress.teardown(trainer, learner, "fit")  # type: ignore[arg-type]
    progress.on_train_batch_end(trainer, learner)  # type: ignore[misc,arg-type]
    del progress
    assert shown.getvalue() == before
    assert before.endswith("\n")
