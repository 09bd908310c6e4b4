"""What every cell starts from, and its activations."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from orthobench.cells.activations import activate, modrelu
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
def test_a_token_is_its_one_hot_vector_and_one_beyond_the_width_is_none(cls: type, options: dict[str, str]) -> None:
    cell, x = random_cell(cls, **options), tokens(2, 5)
    torch.testing.assert_close(cell.project(x), cell.project(F.one_hot(x, 3).double()), **SUMS)
    beyond = cell.project(torch.tensor([[3, 4, 100]]))
    assert torch.equal(beyond, cell.project(torch.zeros(1, 3, 3).double()))
    beyond.sum().backward()
    assert not cell.U.grad.any(), "it trains a weight"


@pytest.mark.parametrize(("cls", "options"), CELLS)
def test_the_initial_state_is_zero_or_a_parameter(cls: type, options: dict[str, str]) -> None:
    state = random_cell(cls, **options).initial_state(2)
    assert [s.shape for s in state] == [(2, 4)] * cls.states
    assert not any(s.any() for s in state)
    cell = random_cell(cls, trainable_h0=True, **options)
    torch.stack(cell.initial_state(5)).sum().backward()
    assert torch.equal(cell.h0.grad, torch.full((cls.states, 4), 5.0).double())


def test_a_trainable_initial_state_starts_within_the_published_bound() -> None:
    cell = untouched_cell(Elman, hidden_size=2000, trainable_h0=True)
    bound = math.sqrt(3 / 4000)
    assert 0.99 * bound < cell.h0.abs().max() <= bound  # 2,000 draws miss the last percent with probability 2e-9


@pytest.mark.parametrize(
    ("cls", "options", "bound"),
    [
        (Elman, {}, math.sqrt(6 / (20 + 80))),  # Glorot's
        (GRU, {}, math.sqrt(6 / (20 + 80 + 3 * 80))),  # one kernel ((I + N), 3N), as in TensorFlow
        (LSTM, {}, math.sqrt(6 / (20 + 80 + 4 * 80))),
        *((*cell.values, 0.01) for cell in CELLS),
    ],
)
def test_input_weights_are_uniform_within_glorots_bound_or_a_given_one(
    cls: type, options: dict[str, str], bound: float
) -> None:
    given = {"input_init": 0.01, **options} if bound == 0.01 else options
    cell = untouched_cell(cls, input_size=20, hidden_size=80, **given)
    assert 0.98 * bound < cell.U.abs().max() <= bound  # at least 1,600 draws: missed with probability 1e-14


@pytest.mark.parametrize(
    ("z", "b", "expected", "by_z", "by_b"),
    [
        (2.0, 0.5, 2.5, 1.0, 1.0),
        (-2.0, 0.5, -2.5, 1.0, -1.0),
        (2.0, -0.5, 1.5, 1.0, 1.0),
        (-2.0, -0.5, -1.5, 1.0, -1.0),
        (0.3, -0.5, 0.0, 0.0, 0.0),
        (-0.3, -0.5, 0.0, 0.0, 0.0),
        (0.5, -0.5, 0.0, 0.0, 0.0),
        (0.0, 0.5, 0.0, 0.0, 0.0),  # sign(0) = 0: a positive bias moves nothing
        (0.0, -0.5, 0.0, 0.0, 0.0),
        (-0.0, 0.5, 0.0, 0.0, 0.0),
        (0.0, 0.0, 0.0, 0.0, 0.0),
    ],
)
def test_modrelu_and_its_gradient(z: float, b: float, expected: float, by_z: float, by_b: float) -> None:
    inputs = torch.tensor(z, requires_grad=True), torch.tensor(b, requires_grad=True)
    found = modrelu(*inputs)
    assert found.item() == expected
    assert [g.item() for g in torch.autograd.grad(found, inputs)] == [by_z, by_b]


def test_modrelu_is_odd_and_passes_not_a_number_on() -> None:
    z, b = torch.linspace(-2, 2, 41), torch.full((41,), -0.7)
    assert torch.equal(modrelu(-z, b), -modrelu(z, b))
    assert modrelu(torch.tensor(float("nan")), torch.tensor(0.1)).isnan()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("relu", lambda z: np.maximum(z, 0)),
        ("leaky_relu", lambda z: np.where(z > 0, z, 0.25 * z)),
        ("abs", np.abs),
        ("tanh", np.tanh),
        ("modrelu", lambda z: np.sign(z) * np.maximum(np.abs(z) - 0.5, 0)),
    ],
)
def test_activations(name: str, expected: object) -> None:
    z = torch.linspace(-3, 3, 61, dtype=torch.float64)
    found = activate(name, z, torch.full_like(z, -0.5), slope=0.25)
    np.testing.assert_allclose(found, expected(z.numpy()), atol=1e-15)  # a rounding or two
