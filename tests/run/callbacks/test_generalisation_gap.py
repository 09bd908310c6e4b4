from pathlib import Path

import pytest

import orthobench
from orthobench.models.build import build_optimizer, build_schedule
from orthobench.run.callbacks.generalisation_gap import gaps, train_scores
from orthobench.run.learner import Learner
from tests.run.callbacks.watching import SHORT, SMALL, finished, steps


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


def learner(*words: str) -> Learner:
    exp = orthobench.build(*SMALL, *SHORT, *words)
    optimizer = build_optimizer(exp.settings, exp.model)
    return Learner(exp.model, exp.task, optimizer, build_schedule(exp.settings), exp.duration)


def test_scores_are_the_tasks_own_over_the_first_batches() -> None:
    module = learner("model=vprnn")
    losses = []
    for index in range(3):
        x, target = module.task.batch("train", 0, index)
        losses.append(module.task.loss(module.model(x)[0], target).item())
    assert train_scores(module, 3) == {"loss": pytest.approx(sum(losses) / 3, rel=1e-6)}


def test_where_the_state_goes_on_from_batch_to_batch_it_does_so_here(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("the quick brown fox jumps over the lazy dog. " * 60, encoding="utf-8")
    words = ("recipe=none", "model=rnn", "model.hidden_size=8", "model.embedding_size=4", "task=text", "T=10")
    exp = orthobench.build(*words, f"task.path={text}", "task.windows=carried", "task.batch_size=4")
    module = Learner(
        exp.model, exp.task, build_optimizer(exp.settings, exp.model), build_schedule(exp.settings), exp.duration
    )
    state, sums, count = None, 0.0, 0.0
    for index in range(3):
        x, target, *mask = module.task.batch("train", 0, index)
        y, state = module.model(x, state)
        size = module.task.weight(target, *mask)
        sums, count = sums + module.task.loss(y, target, *mask).item() * size, count + size
    assert train_scores(module, 3)["loss"] == pytest.approx(sums / count, rel=1e-6)
    assert module._carried == {}  # the training's own state is left alone


def test_scores_are_without_dropout_and_leave_the_mode() -> None:
    module = learner("model=vprnn", "model.dropout=0.5")
    module.model.train()
    assert train_scores(module, 2) == train_scores(module, 2)
    assert module.model.training


def test_no_more_batches_than_there_are() -> None:
    module = learner("model=vprnn", "task.train_size=8")
    assert train_scores(module, 100) == train_scores(module, 2)


def test_a_run_records_it_at_every_validation_when_asked() -> None:
    _, curve = finished("model=vprnn", "diagnostics.train_batches=2")
    assert steps(curve, "gap/loss") == steps(curve, "train_eval/loss") == [3, 6]
    for name in ("train_eval/loss", "val/loss", "gap/loss"):
        assert len(curve.of(name)) >= 2
    train, val, gap = (dict(curve.of(name)) for name in ("train_eval/loss", "val/loss", "gap/loss"))
    assert all(gap[step] == pytest.approx(val[step] - train[step]) for step in gap)
