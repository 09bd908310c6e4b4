"""Free parameters against the published sizes (scoRNN paper, section 5; full counts by formula)."""

import numpy as np
import pytest

import orthobench
from orthobench.cells.elman import Elman
from orthobench.cells.lstm import LSTM
from orthobench.models.recurrent import Recurrent
from orthobench.parametrizations.free import Free
from orthobench.parametrizations.scaled_cayley import ScaledCayley
from tests.making import recurrent_maker


@pytest.mark.parametrize(
    ("model", "task", "n", "total"),
    [
        ("scornn", "copying", 190, 21_764),
        ("scornn", "adding", 170, 15_046),
        ("scornn", "mnist", 170, 16_415),
        ("scornn", "mnist", 360, 68_950),
        ("scornn", "mnist", 512, 136_970),
        ("lstm", "copying", 68, 22_109),
        ("lstm", "adding", 60, 15_181),
        ("lstm", "mnist", 128, 67_850),
        ("lstm", "mnist", 256, 266_762),
        ("lstm", "mnist", 512, 1_057_802),
    ],
)
def test_built_from_the_command_line(model: str, task: str, n: int, total: int) -> None:
    exp = orthobench.build(f"model={model}", f"task={task}", f"model.hidden_size={n}")
    assert exp.parameters["total"] == total


@pytest.mark.parametrize(
    ("cls", "recurrent", "options", "n", "total"),
    [
        (Elman, ScaledCayley, {"activation": "modrelu"}, 224, 83_121),
        (Elman, ScaledCayley, {"activation": "modrelu"}, 322, 135_208),
        (Elman, ScaledCayley, {"activation": "modrelu"}, 425, 200_304),
        (LSTM, Free, {}, 84, 82_869),
        (LSTM, Free, {}, 120, 135_609),
        (LSTM, Free, {}, 158, 202_527),
    ],
)
def test_timit(cls: type, recurrent: type, options: dict[str, str], n: int, total: int) -> None:
    rng = np.random.default_rng(1)

    def make_cell(input_size: int, size: int) -> Elman | LSTM:
        make = recurrent_maker(size, rng, recurrent)
        return cls(input_size=input_size, hidden_size=size, rng=rng, make_recurrent=make, **options)

    assert Recurrent(129, 129, "all", make_cell, rng, hidden_size=n).parameter_counts()["total"] == total


def test_recurrent_share_of_a_skew_matrix() -> None:
    assert orthobench.build("model=scornn", "task=copying").parameters["recurrent"] == 190 * 189 // 2


def test_recurrent_share_of_four_gates() -> None:
    exp = orthobench.build("model=lstm", "task=copying", "model.hidden_size=68")
    assert exp.parameters["recurrent"] == 4 * 68 * 68
