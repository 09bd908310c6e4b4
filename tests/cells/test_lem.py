"""Long expressive memory against a loop in NumPy, its size and its start."""

import numpy as np
import pytest

import orthobench
from orthobench.cells.lem import LEM
from orthobench.parametrizations.scaled_cayley import ScaledCayley
from orthobench.scan import choose, recurrence
from tests.making import arrays, draw, random_cell, untouched_cell


def sigmoid(z: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-z))


def test_against_a_loop_in_numpy() -> None:
    cell, x = random_cell(LEM, dt=0.3), draw(2, 6, 3)
    a = arrays(cell)
    y, z, seen = np.zeros((2, 4)), np.zeros((2, 4)), []
    for x_t in x.numpy().transpose(1, 0, 2):
        own = {k: x_t @ a[f"U_{k}"].T + a[f"b_{k}"] for k in "abzy"}
        step_a, step_b = (0.3 * sigmoid(own[k] + y @ a[f"W_{k}"].T) for k in "ab")
        z = (1 - step_b) * z + step_b * np.tanh(own["z"] + y @ a["W_z"].T)
        y = (1 - step_a) * y + step_a * np.tanh(own["y"] + z @ a["W_y"].T)
        seen.append(y)
    h, final = recurrence(cell, x)
    np.testing.assert_allclose(h.detach().numpy().transpose(1, 0, 2), seen, rtol=0, atol=1e-13)
    np.testing.assert_allclose([s.detach().numpy() for s in final], [y, z], rtol=0, atol=1e-13)


@pytest.mark.parametrize("T", [1, 40])
def test_states_stay_in_the_unit_box(T: int) -> None:
    cell = random_cell(LEM)
    _, final = recurrence(cell, 100 * draw(3, T, 3))
    assert all(s.abs().max() <= 1 for s in final)


@pytest.mark.parametrize(("I", "N"), [(1, 128), (2, 128), (9, 20)])
def test_size(I: int, N: int) -> None:
    cell = untouched_cell(LEM, input_size=I, hidden_size=N)
    assert sum(p.numel() for p in cell.parameters()) == 4 * N * I + 4 * N**2 + 4 * N


def test_the_published_start_is_one_bound_for_all() -> None:
    cell = orthobench.build("model=lem", "task=adding").model.cells[0]
    for p in cell.parameters():
        assert 0.9 * 128**-0.5 < p.detach().abs().max() <= 128**-0.5


def test_constrained_gates() -> None:
    cell = untouched_cell(LEM, recurrent=ScaledCayley, orthogonal=["z", "y"])
    assert [name for name, W in cell.recurrent.items() if W.constrained] == ["z", "y"]


def test_it_runs_as_one_function_without_a_graph_per_step() -> None:
    assert choose(random_cell(LEM))[0] in ("native", "fused")
