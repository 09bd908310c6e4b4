import numpy as np
import pytest
import torch

from orthobench.cells.gru import GRU
from orthobench.parametrizations.scaled_cayley import ScaledCayley
from tests.making import arrays, draw, random_cell, untouched_cell


def sigmoid(z: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-z))


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


def test_reset_before_and_after_differ() -> None:
    x, h = draw(2, 1, 3), draw(2, 4, seed=1)
    before, after = (random_cell(GRU, reset=reset) for reset in ("before", "after"))
    found = [cell.step(cell.project(x)[0], (h,), cell.matrices())[0] for cell in (before, after)]
    assert not torch.allclose(*found, atol=1e-3)


def test_an_open_update_gate_keeps_the_old_state() -> None:
    cell = random_cell(GRU)
    torch.nn.init.constant_(cell.b["u"], 1e3)  # sigmoid is exactly one
    h = draw(2, 4, seed=1)
    (found,) = cell.step(cell.project(draw(2, 1, 3))[0], (h,), cell.matrices())
    assert torch.equal(found, h)


@pytest.mark.parametrize("activation", ["tanh", "modrelu"])
def test_bias_of_the_candidate_is_in_the_projection_unless_it_is_inside_modrelu(activation: str) -> None:
    cell = random_cell(GRU, activation=activation)
    expected = [cell.b["r"], cell.b["u"], cell.b["c"] if activation == "tanh" else torch.zeros(4).double()]
    assert torch.equal(cell.project(torch.zeros(1, 1, 3).double())[0, 0], torch.cat(expected))


@pytest.mark.parametrize("orthogonal", [["c"], ["c", "r"], ["c", "r", "u"], []])
def test_constrained_gates(orthogonal: list[str]) -> None:
    cell = untouched_cell(GRU, recurrent=ScaledCayley, orthogonal=orthogonal)
    assert {gate for gate, p in cell.recurrent.items() if p.constrained} == set(orthogonal)


def test_every_gate_has_a_matrix_of_its_own() -> None:
    W = untouched_cell(GRU, recurrent=ScaledCayley, orthogonal=["r", "u", "c"]).matrices()
    assert not torch.equal(W[0], W[1])
    assert not torch.equal(W[1], W[2])


def test_initial_bias_of_the_gates() -> None:
    cell = untouched_cell(GRU, gate_bias=-1.5)
    assert {gate: set(b.tolist()) for gate, b in cell.b.items()} == {"r": {-1.5}, "u": {-1.5}, "c": {0.0}}


@pytest.mark.parametrize(
    ("reset", "activation", "kernel"),
    [("after", "tanh", "gru"), ("before", "tanh", None), ("after", "modrelu", None), ("before", "relu", None)],
)
def test_kernel(reset: str, activation: str, kernel: str | None) -> None:
    assert random_cell(GRU, reset=reset, activation=activation).torch_kernel() == kernel
