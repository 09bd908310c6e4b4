"""What a trained model answers: on the test split, as text, and how its gates stand along a sequence."""

from pathlib import Path
from typing import Any

import pytest
import torch

import orthobench
from orthobench.__main__ import main
from orthobench.cells.elman import Elman
from orthobench.cells.lstm import LSTM
from orthobench.errors import ConfigError
from orthobench.models.recurrent import Recurrent
from orthobench.parametrizations.scaled_cayley import ScaledCayley
from orthobench.report.predictions import figures
from orthobench.run.dynamics import _start, in_float64
from orthobench.run.gates import SPREAD, gates
from orthobench.run.generate import draw
from orthobench.run.predictions import WORST, Predictions, _answers, _means, predictions
from orthobench.tasks.real.ptb_char import PTBChar
from orthobench.tasks.real.ptb_word import PTBWord
from tests.conftest import Refused
from tests.making import network
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


def language_model() -> Recurrent:
    return network(LSTM, input_size=3, output_size=3).float()


def drawn(temperature: float, seed: int = 1, tokens: int = 20) -> list[int]:
    return list(draw(language_model(), [0, 2, 1], tokens, temperature, torch.Generator().manual_seed(seed)))


def test_temperature_zero_takes_the_likeliest_token_after_all_that_was_read() -> None:
    model, read = language_model(), [0, 2, 1]
    tokens = drawn(0.0)
    assert len(tokens) == 20
    for token in tokens:
        assert token == int(model(torch.tensor([read]))[0][0, -1].argmax())
        read.append(token)


def test_matrices_are_made_once_for_all_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    model = network(Elman, recurrent=ScaledCayley, input_size=3, output_size=3).float()
    made, forward = [], type(model.cells[0].recurrent["h"]).forward
    monkeypatch.setattr(type(model.cells[0].recurrent["h"]), "forward", lambda own: made.append(1) or forward(own))
    assert len(list(draw(model, [0, 2, 1], 20, 0.0, torch.Generator().manual_seed(1)))) == 20
    assert len(made) == 1
    assert model.training, "the network itself is as it was"


def test_a_seed_decides_the_draws() -> None:
    assert drawn(1.0) == drawn(1.0)
    assert drawn(1.0) != drawn(1.0, seed=2)


def test_the_first_token_has_the_models_distribution() -> None:
    model, generator = language_model(), torch.Generator().manual_seed(1)
    logits = model(torch.tensor([[0, 2, 1]]))[0][0, -1].detach()
    counts = torch.zeros(3)
    for _ in range(600):
        counts[next(draw(model, [0, 2, 1], 1, 2.0, generator))] += 1
    expected = (logits / 2.0).softmax(-1)
    assert (counts / 600 - expected).abs().max() < 4 * 0.5 / 600**0.5  # four standard errors


@pytest.mark.parametrize(
    ("task", "text", "tokens", "pieces"),
    [
        (PTBChar, "a cat\n", ["a", "_", "c", "a", "t", "\n"], "a cat\n"),
        (PTBWord, "a cat <eos>", ["a", "cat", "<eos>"], " a cat\n"),
    ],
)
def test_tokens_of_a_text_and_back(task: type, text: str, tokens: list[str], pieces: str) -> None:
    made = task()
    assert made.split(text) == tokens
    assert "".join(map(made.piece, tokens)) == pieces


def test_a_task_without_text_is_refused(tmp_path: Path, refused: Refused) -> None:
    folder, _ = finished(tmp_path, "model=rnn", "task=adding", "T=5")
    refused(["generate", str(folder)], "is a run of adding, which has no text to generate")


NAMED = ["lstm", "gru", "goru", "lem", "mingru", "minlstm", "mlstm", "slstm", "deltaproduct", "mamba3", "rwkv7"]
B, T = 3, 5


def made(model: str) -> tuple[Any, torch.Tensor]:
    network = orthobench.build(f"model={model}", "task=adding", f"T={T}", "model.hidden_size=8", "recipe=none").model
    x = torch.rand(B, T, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    cell: Any = in_float64(network).cells[0]  # type: ignore[attr-defined]
    return cell, x


@torch.no_grad()
def test_the_gates_of_an_lstm() -> None:
    cell, x = made("lstm")
    W, projected, state = _start(cell, x)
    found = gates(cell, W, projected, state)
    h, c = state
    for t, p in enumerate(projected):
        i, f, g, o = (p + h @ W[0].T).chunk(4, dim=-1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        for name, value in {"i": i, "f": f, "o": o}.items():
            wanted = value.sigmoid().flatten().quantile(torch.tensor(SPREAD, dtype=torch.float64))
            assert found[name][t] == pytest.approx(wanted.tolist(), rel=1e-12)


@pytest.mark.parametrize("model", [*NAMED, "sgornn"])
@torch.no_grad()
def test_every_gate_with_a_name_is_seen_at_every_step(model: str) -> None:
    cell, x = made(model)
    found = gates(cell, *_start(cell, x))
    names = ("alpha", "beta") if model == "sgornn" else cell.opened
    assert tuple(found) == names
    assert set(names) <= set(cell.gates) or model == "sgornn"
    assert all(len(one) == T and all(0 <= low <= mid <= high <= 1 for low, mid, high in one) for one in found.values())


@torch.no_grad()
def test_a_cell_without_gates_has_none() -> None:
    cell, x = made("scornn")
    assert gates(cell, *_start(cell, x)) == {}
