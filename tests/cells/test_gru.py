import numpy as np
import pytest
import torch

from orthobench.cells.gru import GRU
from orthobench.parametrizations.scaled_cayley import ScaledCayley
from tests.making import arrays, draw, random_cell, sigmoid, untouched_cell


def gru_step(a: dict[str, np.ndarray], x: np.ndarray, h: np.ndarray, reset: str, activation: str) -> np.ndarray:
    r = sigmoid(x @ a["U_r"].T + h @ a["W_r"].T + a["b_r"])
    u = sigmoid(x @ a["U_u"].T + h @ a["W_u"].T + a["b_u"])
    recalled = (r * h) @ a["W_c"].T if reset == "before" else r * (h @ a["W_c"].T)
    z = x @ a["U_c"].T + recalled
    inside = np.sign(z) * np.maximum(np.abs(z) + a["b_c"], 0)
    return u * h + (1 - u) * (inside if activation == "modrelu" else np.tanh(z + a["b_c"]))


@pytest.mark.parametrize("reset", ["before", "after"])
@pytest.mark.parametrize("activation", ["tanh", "modrelu"])
def test_step(reset: str, activation: str) -> None:
    cell = random_cell(GRU, reset=reset, activation=activation)
    x, h = draw(2, 1, 3), draw(2, 4, seed=1)
    (found,) = cell.step(cell.project(x)[0], (h,), cell.matrices())
    expected = gru_step(arrays(cell), x[:, 0].numpy(), h.numpy(), reset, activation)
    np.testing.assert_allclose(found.detach(), expected, atol=1e-14)  # sums of eight terms


def test_every_gate_has_a_matrix_of_its_own() -> None:
    W = untouched_cell(GRU, recurrent=ScaledCayley, orthogonal=["r", "u", "c"]).matrices()
    assert not torch.equal(W[0], W[1])
    assert not torch.equal(W[1], W[2])


def test_initial_bias_of_the_gates() -> None:
    cell = untouched_cell(GRU, gate_bias=-1.5)
    assert {gate: set(b.tolist()) for gate, b in cell.b.items()} == {"r": {-1.5}, "u": {-1.5}, "c": {0.0}}
