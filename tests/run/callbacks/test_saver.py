"""Callbacks that keep: the best validation, the baseline's place, rows of a log point, the gap of generalisation."""

import math
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

import orthobench
from orthobench.models.build import build_optimizer, build_schedule
from orthobench.recording.curve import Curve
from orthobench.run.callbacks.baseline import BaselineCrossing
from orthobench.run.callbacks.generalisation_gap import gaps, train_scores
from orthobench.run.callbacks.saver import Saver, _better
from orthobench.run.learner import Learner
from orthobench.tasks.duration import Duration
from orthobench.tasks.metric import ACCURACY, Metric
from tests.run.callbacks.watching import SHORT, SMALL, finished, steps


def results(value: float, loss: float, name: str = "accuracy") -> dict[str, float]:
    return {f"val/{name}": value, "val/loss": loss}


def test_no_half_accumulated_gradients_are_saved() -> None:
    saved: list[int] = []
    duration = SimpleNamespace(duration=Duration(60, 3, None, 60))
    for index in range(9):
        due = SimpleNamespace(_asked=lambda: None, is_due=lambda: True, save=lambda _, at=index: saved.append(at))
        Saver.on_train_batch_end(cast("Any", due), cast("Any", None), cast("Any", duration), None, None, index)
    assert saved == [2, 5, 8]


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        ((0.9, 2.0), (0.8, 1.0), True),
        ((0.8, 1.0), (0.9, 2.0), False),
        ((0.9, 0.5), (0.9, 0.6), True),  # equal accuracy
        ((0.9, 0.6), (0.9, 0.6), False),  # the first of equals
        ((0.9, math.nan), (0.9, 0.6), False),
        ((0.1, 9.0), (math.nan, 0.1), True),
        ((math.nan, 0.1), (0.1, 9.0), False),
    ],
)
def test_the_headline_metric_decides_then_the_loss(
    new: tuple[float, float], old: tuple[float, float], expected: bool
) -> None:
    module: Any = SimpleNamespace(task=SimpleNamespace(metric="accuracy", higher_is_better=True))
    assert _better(module)(results(*new), results(*old)) is expected


@pytest.mark.parametrize("old", [{"val/loss": 0.2}, {"val/loss": 0.2, "val/rmse": 0.3}])
def test_a_loss_is_better_when_lower_and_decides_where_an_earlier_version_had_no_headline_metric(
    old: dict[str, float],
) -> None:
    module: Any = SimpleNamespace(task=SimpleNamespace(metric="rmse", higher_is_better=False))
    assert _better(module)({"val/loss": 0.1, "val/rmse": 0.3}, old)
    assert not _better(module)({"val/loss": 0.2, "val/rmse": 0.3}, old)


def test_the_best_test_score_is_by_the_direction_that_the_task_declares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a metric is called."""
    saver = Saver(tmp_path, Curve(tmp_path / "metrics.csv"))
    monkeypatch.setattr(saver, "save", lambda trainer: None)
    declared = (ACCURACY, Metric("error", "share", "lower"), Metric("gain_over_loss", "nats", "higher"))
    task = SimpleNamespace(metric="error", higher_is_better=False, select_on_test=True, declared=lambda: declared)
    trainer: Any = SimpleNamespace(global_step=1, sanity_checking=False, save_checkpoint=lambda path: None)
    for error, accuracy in ((0.3, 0.7), (0.2, 0.8), (0.4, 0.6)):
        scores = {"error": error, "accuracy": accuracy, "gain_over_loss": accuracy}
        results = {f"{split}/{name}": value for split in ("val", "test") for name, value in scores.items()}
        saver.on_validation_end(trainer, SimpleNamespace(task=task, results=results))  # type: ignore[arg-type]
    assert saver.best_test == {"test/error": 0.2, "test/accuracy": 0.8, "test/gain_over_loss": 0.8}


def validate(watcher: BaselineCrossing, losses: dict[int, float], baseline: float = 2.0) -> dict[str, int | None]:
    for step, loss in losses.items():
        module: Any = SimpleNamespace(results={"val/loss": loss}, task=SimpleNamespace(baseline={"loss": baseline}))
        watcher.on_validation_end(SimpleNamespace(global_step=step), module)
    return watcher.steps


@pytest.mark.parametrize(
    ("losses", "steps"),
    [
        ({}, {"baseline": None, "tenth": None}),
        ({10: 3.0, 20: 2.5}, {"baseline": None, "tenth": None}),
        ({10: 2.0}, {"baseline": None, "tenth": None}),  # equal is not below
        ({10: 3.0, 20: 1.9, 30: 1.0}, {"baseline": 20, "tenth": None}),
        ({10: 1.9, 20: 2.5, 30: 1.8}, {"baseline": 10, "tenth": None}),  # the first time counts
        ({10: 1.9, 20: 0.2, 30: 0.19, 40: 0.1}, {"baseline": 10, "tenth": 30}),
        ({10: 0.1}, {"baseline": 10, "tenth": 10}),
        ({10: float("nan"), 20: 1.0}, {"baseline": 20, "tenth": None}),
    ],
)
def test_first_steps_below(losses: dict[int, float], steps: dict[str, int | None]) -> None:
    assert validate(BaselineCrossing(), losses) == steps


def test_a_resumed_run_remembers() -> None:
    first, resumed = BaselineCrossing(), BaselineCrossing()
    validate(first, {10: 1.9})
    resumed.load_state_dict(first.state_dict())
    assert validate(resumed, {20: 1.8, 30: 0.1}) == {"baseline": 10, "tenth": 30}


@pytest.mark.parametrize(
    ("results", "baseline"), [({}, {"loss": 2.0}), ({"val/loss": 1.0}, {}), ({"test/loss": 1.0}, {"loss": 2.0})]
)
def test_nothing_is_crossed_without_a_loss_or_a_baseline(results: dict[str, float], baseline: dict[str, float]) -> None:
    watcher = BaselineCrossing()
    module: Any = SimpleNamespace(results=results, task=SimpleNamespace(baseline=baseline))
    watcher.on_validation_end(SimpleNamespace(global_step=10), module)
    assert watcher.steps == {"baseline": None, "tenth": None}


def test_the_learning_rate_is_that_of_the_step(tmp_path: Path) -> None:
    _, curve = finished("model=rnn", "schedule=linear", "optimizer.lr=0.06", f"runs_root={tmp_path}")
    found = {int(step): float(rate) for step, rate in curve.of("lr/free")}
    assert found == pytest.approx({2: 0.05, 4: 0.03, 6: 0.01})


@pytest.mark.parametrize(
    ("train", "results", "expected"),
    [
        ({"loss": 0.5}, {"val/loss": 0.75}, {"gap/loss": 0.25}),
        ({"accuracy": 0.75}, {"val/accuracy": 0.5}, {"gap/accuracy": 0.25}),
        ({"perplexity": 100.0}, {"val/perplexity": 90.0}, {"gap/perplexity": -10.0}),
        ({"mse_with_padding": 1.0}, {"val/mse_with_padding": 2.0}, {"gap/mse_with_padding": 1.0}),
        ({"loss": 0.5}, {"val/loss": 0.75, "test/loss": 1.0}, {"gap/loss": 0.25, "gap_test/loss": 0.5}),
        ({"loss": 0.5}, {}, {}),
    ],
)
def test_a_gap_is_positive_where_training_scores_are_better(
    train: dict[str, float], results: dict[str, float], expected: dict[str, float]
) -> None:
    assert gaps(train, results, {"loss", "perplexity", "mse_with_padding"}) == expected


def learner(*words: str, own: Sequence[str] = (*SMALL, *SHORT)) -> Learner:
    exp = orthobench.build(*own, *words)
    optimizer = build_optimizer(exp.settings, exp.model)
    return Learner(exp.model, exp.task, optimizer, build_schedule(exp.settings), exp.duration)


def test_scores_are_the_tasks_own_over_the_first_batches() -> None:
    module = learner("model=vprnn")
    losses = []
    for index in range(3):
        x, target = module.task.batch("train", 0, index)
        losses.append(module.task.loss(module.model(x)[0], target).item())
    assert train_scores(module, 3) == {"loss": pytest.approx(sum(losses) / 3, rel=1e-6)}


def carrying(folder: Path) -> Learner:
    """A learner whose state goes on from batch to batch."""
    text = folder / "text.txt"
    text.write_text("the quick brown fox jumps over the lazy dog. " * 60, encoding="utf-8")
    words = ("recipe=none", "model=rnn", "model.hidden_size=8", "model.embedding_size=4", "task=text", "T=10")
    return learner(*words, f"task.path={text}", "task.windows=carried", "task.batch_size=4", own=())


def test_where_the_state_goes_on_from_batch_to_batch_it_does_so_here(tmp_path: Path) -> None:
    module = carrying(tmp_path)
    state, sums, count = None, 0.0, 0.0
    for index in range(3):
        x, target, *mask = module.task.batch("train", 0, index)
        y, state = module.model(x, state)
        size = module.task.weight(target, *mask)
        sums, count = sums + module.task.loss(y, target, *mask).item() * size, count + size
    assert train_scores(module, 3)["loss"] == pytest.approx(sums / count, rel=1e-6)
    assert module._carried == {}  # the training's own state is left alone


def test_the_state_of_a_checkpoint_goes_on_where_the_model_is(tmp_path: Path) -> None:
    module = carrying(tmp_path)
    module.on_load_checkpoint({"carried": [(torch.zeros(4, 8),)]})
    found = module.to("meta")._before("train", False)
    assert [s.device.type for layer in found or () for s in layer] == ["meta"]


def test_scores_are_without_dropout_and_of_no_more_batches_than_there_are() -> None:
    module = learner("model=vprnn", "model.dropout=0.5", "task.train_size=8")
    module.model.train()
    assert train_scores(module, 2) == train_scores(module, 100)
    assert module.model.training, "the mode is left"


def test_a_run_records_it_at_every_validation_when_asked() -> None:
    _, curve = finished("model=vprnn", "diagnostics.train_batches=2")
    assert steps(curve, "gap/loss") == steps(curve, "train_eval/loss") == [3, 6]
    for name in ("train_eval/loss", "val/loss", "gap/loss"):
        assert len(curve.of(name)) >= 2
    train, val, gap = (dict(curve.of(name)) for name in ("train_eval/loss", "val/loss", "gap/loss"))
    assert all(gap[step] == pytest.approx(val[step] - train[step]) for step in gap)
