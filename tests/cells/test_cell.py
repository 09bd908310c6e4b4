import math

import pytest
import torch
from torch.nn import functional as F

from orthobench.cells.elman import Elman
from orthobench.cells.gru import GRU
from orthobench.cells.lstm import LSTM
from tests.making import random_cell, tokens, untouched_cell

SUMS = {"rtol": 0, "atol": 1e-14}  # sums of four terms near one, added in another order
CELLS = [
    pytest.param(Elman, {"activation": "tanh"}, id="elman"),
    pytest.param(Elman, {"activation": "modrelu"}, id="modrelu"),
    pytest.param(GRU, {"activation": "modrelu", "reset": "before"}, id="gru"),
    pytest.param(LSTM, {}, id="lstm"),
]


@pytest.mark.parametrize(("cls", "options"), CELLS)
def test_a_token_is_its_one_hot_vector(cls: type, options: dict[str, str]) -> None:
    cell, x = random_cell(cls, **options), tokens(2, 5)
    torch.testing.assert_close(cell.project(x), cell.project(F.one_hot(x, 3).double()), **SUMS)


@pytest.mark.parametrize("token", [3, 4, 100])
@pytest.mark.parametrize(("cls", "options"), CELLS)
def test_a_token_beyond_the_width_is_the_zero_vector(cls: type, options: dict[str, str], token: int) -> None:
    cell = random_cell(cls, **options)
    assert torch.equal(cell.project(torch.tensor([[token]])), cell.project(torch.zeros(1, 1, 3).double()))


def test_a_token_beyond_the_width_trains_no_weight() -> None:
    cell = random_cell(Elman)
    cell.project(torch.tensor([[3, 7]])).sum().backward()
    assert not cell.U.grad.any()


@pytest.mark.parametrize(("cls", "options"), CELLS)
def test_the_initial_state_is_zero(cls: type, options: dict[str, str]) -> None:
    state = random_cell(cls, **options).initial_state(2)
    assert [s.shape for s in state] == [(2, 4)] * cls.states
    assert not any(s.any() for s in state)


@pytest.mark.parametrize(("cls", "options"), CELLS)
def test_a_trainable_initial_state_is_a_parameter(cls: type, options: dict[str, str]) -> None:
    cell = random_cell(cls, trainable_h0=True, **options)
    torch.stack(cell.initial_state(5)).sum().backward()
    assert torch.equal(cell.h0.grad, torch.full((cls.states, 4), 5.0).double())


def test_a_trainable_initial_state_starts_within_the_published_bound() -> None:
    cell = untouched_cell(Elman, hidden_size=2000, trainable_h0=True)
    bound = math.sqrt(3 / 4000)
    assert 0.99 * bound < cell.h0.abs().max() <= bound  # 2,000 draws miss the last percent with probability 2e-9


@pytest.mark.parametrize(
    ("cls", "bound"),
    [
        (Elman, math.sqrt(6 / (20 + 80))),
        (GRU, math.sqrt(6 / (20 + 80 + 3 * 80))),  # one kernel ((I + N), 3N), as in TensorFlow
        (LSTM, math.sqrt(6 / (20 + 80 + 4 * 80))),
    ],
)
def test_input_weights_are_glorot_uniform(cls: type, bound: float) -> None:
    cell = untouched_cell(cls, input_size=20, hidden_size=80)
    assert 0.98 * bound < cell.U.abs().max() <= bound  # at least 1,600 draws: missed with probability 1e-14


@pytest.mark.parametrize(("cls", "options"), CELLS)
def test_input_weights_within_a_given_bound(cls: type, options: dict[str, str]) -> None:
    cell = untouched_cell(cls, input_size=20, hidden_size=80, input_init=0.01, **options)
    assert 0.0098 < cell.U.abs().max() <= 0.01
