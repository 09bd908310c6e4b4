"""Long expressive memory against a loop in NumPy, its size and its start."""

import numpy as np
import pytest

from orthobench.cells.lem import LEM
from orthobench.scan import recurrence
from tests.making import arrays, draw, random_cell, sigmoid


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
