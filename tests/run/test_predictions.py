"""Answers of a trained model on the test split, against what its own loss and metrics say."""

from pathlib import Path

import pytest
import torch

import orthobench
from orthobench.__main__ import main
from orthobench.errors import ConfigError
from orthobench.report.predictions import figures
from orthobench.run.predictions import WORST, Predictions, _answers, _means, predictions
from tests.run.finished import finished


@pytest.mark.parametrize(
    ("words", "every_step"),
    [(("model=scornn", "task=copying", "T=5"), True), (("model=gru", "task=cued_recall"), True)],
    ids=["copying", "cued_recall"],
)
def test_classes_are_counted_where_they_are_asked(words: tuple[str, ...], every_step: bool, tmp_path: Path) -> None:
    folder, record = finished(tmp_path, *words)
    run = orthobench.load(folder)
    found = predictions(run)
    assert found.every_step == every_step
    assert found.confusion is not None
    batches = [run.task.batch("test", 0, n) for n in range(run.task.batches("test"))]
    asked = sum(int(b[2].sum()) if len(b) == 3 else b[1].numel() for b in batches)
    assert int(found.confusion.sum()) == asked
    if len(batches[0]) == 2:
        right = int(found.confusion.diagonal().sum())
        assert right / asked == pytest.approx(record["metrics"]["best_val"]["test/accuracy"], abs=1e-6)
    every = []
    for x, target, *mask in batches:
        with torch.no_grad():
            y, _ = run.model(x)
        for n in range(len(x)):
            mine = [part[n : n + 1] for part in mask]
            every.append(float(run.task.loss(y[n : n + 1], target[n : n + 1], *mine)))
    assert [one.loss for one in found.worst] == pytest.approx(sorted(every, reverse=True)[:WORST], rel=1e-4)
    worst = found.worst[0]
    assert every[worst.number] == pytest.approx(max(every), rel=1e-4)
    made = figures(found, run.run_id)
    assert [title.partition(": ")[2] for title in made] == ["confusion of classes", "worst test sequences"]


def test_values_are_paired_with_their_targets(tmp_path: Path) -> None:
    folder, record = finished(tmp_path, "model=rnn", "task=adding", "T=5")
    run = orthobench.load(folder)
    found = predictions(run)
    errors = torch.tensor([(target - answer) ** 2 for target, answer in found.pairs])
    assert float(errors.mean()) == pytest.approx(record["metrics"]["best_val"]["test/loss"], rel=1e-5)
    assert found.confusion is None
    assert len(figures(found, run.run_id)) == 2


def test_one_number_for_two_classes() -> None:
    found = Predictions(("0", "1"), every_step=False)
    answer, losses = _answers("run", found, torch.tensor([[2.0], [-2.0]]), torch.tensor([1.0, 1.0]))
    assert answer.tolist() == [1, 0]
    assert losses.tolist() == pytest.approx([0.12693, 2.12693], abs=1e-4)


def test_a_mean_is_over_what_is_asked() -> None:
    losses, asked = torch.tensor([[1.0, 3.0], [5.0, 7.0]]), torch.tensor([[True, False], [False, False]])
    assert _means(losses, asked) == [1.0, 0.0]
    assert _means(losses.unsqueeze(-1).expand(2, 2, 3), asked) == [1.0, 0.0]
    assert _means(losses, None) == [2.0, 6.0]


def test_answers_of_another_shape_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"run: its answers \(2, 3\) to targets \(2, 2\) are not drawn"):
        _answers("run", Predictions((), every_step=False), torch.zeros(2, 3), torch.zeros(2, 2))


def test_plot_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, _ = finished(tmp_path, "model=scornn", "task=copying", "T=5")
    capsys.readouterr()
    assert main(["plot", str(folder), "--format", "png", "--logy"]) == 0
    names = sorted(path.name.removeprefix(f"{folder.name}-") for path in (folder / "figures").iterdir())
    assert names == ["confusion-of-classes.png", "learning-curve.png", "worst-test-sequences.png"]
    for path in (folder / "checkpoints").iterdir():
        path.write_bytes(b"damaged")
    assert main(["plot", str(folder)]) == 0
    out, err = capsys.readouterr()
    assert "learning-curve.svg" in out
    assert "no predictions are drawn: " in err
    assert main(["plot", str(folder), "--style", "nowhere.mplstyle"]) == 2
