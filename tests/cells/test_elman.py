import numpy as np
import pytest

from orthobench.cells.elman import Elman
from tests.making import arrays, draw, random_cell

ACTIVATIONS = {
    "tanh": np.tanh,
    "relu": lambda z: np.maximum(z, 0),
    "leaky_relu": lambda z: np.where(z > 0, z, 0.3 * z),
    "abs": np.abs,
}


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_step(activation: str) -> None:
    cell = random_cell(Elman, activation=activation, negative_slope=0.3)
    x, h = draw(2, 1, 3), draw(2, 4, seed=1)
    (found,) = cell.step(cell.project(x)[0], (h,), cell.matrices())
    a = arrays(cell)
    z = x[:, 0].numpy() @ a["U_h"].T + h.numpy() @ a["W_h"].T + a["b_h"]
    np.testing.assert_allclose(found.detach(), ACTIVATIONS[activation](z), atol=1e-14)  # sums of eight terms


def test_step_with_the_bias_inside_modrelu() -> None:
    cell = random_cell(Elman, activation="modrelu")
    x, h = draw(2, 1, 3), draw(2, 4, seed=1)
    (found,) = cell.step(cell.project(x)[0], (h,), cell.matrices())
    a = arrays(cell)
    z = x[:, 0].numpy() @ a["U_h"].T + h.numpy() @ a["W_h"].T
    np.testing.assert_allclose(found.detach(), np.sign(z) * np.maximum(np.abs(z) + a["b_h"], 0), atol=1e-14)
