"""Text from a language model: what is drawn follows the model's own distribution."""

from pathlib import Path

import pytest
import torch

from orthobench.__main__ import main
from orthobench.cells.lstm import LSTM
from orthobench.models.recurrent import Recurrent
from orthobench.run.generate import draw
from orthobench.tasks.real.ptb_char import PTBChar
from orthobench.tasks.real.ptb_word import PTBWord
from tests.making import network
from tests.run.finished import finished


def language_model() -> Recurrent:
    return network(LSTM, input_size=3, output_size=3).float()


def drawn(temperature: float, seed: int = 1, tokens: int = 20) -> list[int]:
    return list(draw(language_model(), [0, 2, 1], tokens, temperature, torch.Generator().manual_seed(seed)))


def test_temperature_zero_takes_the_likeliest_token_after_all_that_was_read() -> None:
    model, read = language_model(), [0, 2, 1]
    for token in drawn(0.0):
        assert token == int(model(torch.tensor([read]))[0][0, -1].argmax())
        read.append(token)


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


def test_a_task_without_text_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, _ = finished(tmp_path, "model=rnn", "task=adding", "T=5")
    assert main(["generate", str(folder)]) == 2
    assert "is a run of adding, which has no text to generate" in capsys.readouterr().err
