"""GORU against its equations in NumPy, with the authors' initial values."""

import math

import numpy as np
import pytest
import torch

import orthobench
from orthobench.cells.goru import GORU
from orthobench.parametrizations.givens import Givens
from orthobench.scan import recurrence
from tests.making import arrays, draw, random_cell, sigmoid, untouched_cell


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_steps_in_numpy(engine: str) -> None:
    cell, x = random_cell(GORU, recurrent=Givens), draw(2, 6, 3)
    p, h, expected = arrays(cell), np.zeros((2, 4)), []
    theirs = p["b_c"] - 0.001  # the stored bias holds the authors' 0.001
    for x_t in x.numpy().transpose(1, 0, 2):
        r = sigmoid(x_t @ p["U_r"].T + h @ p["W_r"].T + p["b_r"])
        g = sigmoid(x_t @ p["U_u"].T + h @ p["W_u"].T + p["b_u"])
        z = x_t @ p["U_c"].T + r * (h @ p["W_c"].T)
        h = g * h + (1 - g) * np.sign(z) * np.maximum(np.abs(z) + 0.001 + theirs, 0)
        expected.append(h)
    hidden, _ = recurrence(cell, x, engine=engine)
    np.testing.assert_allclose(hidden.detach().numpy(), np.stack(expected, axis=1), atol=1e-13)


def test_initial_values() -> None:
    cell = untouched_cell(GORU, input_size=30, hidden_size=600)
    assert torch.equal(cell.b["r"], torch.full((600,), 2.0).double())
    torch.testing.assert_close(cell.b["c"], torch.full((600,), 0.011).double())
    bound = math.sqrt(3 / 600)
    assert 0.98 * bound < cell.b["u"].abs().max() <= bound
    assert 0.0099 < cell.U.abs().max() <= 0.01


def test_free_gates_of_the_model_start_small() -> None:
    cell = orthobench.build("model=goru", "task=copying").model.cells[0]
    W_r, W_u, Q = (W.detach() for W in cell.matrices())
    assert max(W_r.abs().max(), W_u.abs().max()) <= 0.01
    torch.testing.assert_close(Q.T @ Q, torch.eye(100), atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    ("words", "style"),
    [([], "tunable"), (["model.style=fft", "model.hidden_size=128"], "fft"), (["model.recurrent=householder"], None)],
)
def test_other_rotations(words: list[str], style: str | None) -> None:
    exp = orthobench.build("model=goru", "task=copying", "T=20", *words)
    assert exp.settings.model.get("style") == style
    assert len(exp.model.recurrent_weights()) == 1
