"""Coupled oscillators against a loop in NumPy, their size and their start."""

import numpy as np
import torch

from orthobench.cells.cornn import CoRNN
from orthobench.scan import recurrence
from tests.making import draw, random_cell


def test_against_a_loop_in_numpy() -> None:
    cell, x = random_cell(CoRNN, dt=0.2, gamma=1.7, epsilon=2.3), draw(2, 6, 3)
    U, b, W, V = (p.detach().numpy() for p in (cell.U, cell.b["z"], *(map_() for map_ in cell.recurrent.values())))
    y, z, seen = np.zeros((2, 4)), np.zeros((2, 4)), []
    for x_t in x.numpy().transpose(1, 0, 2):
        z = z + 0.2 * (np.tanh(y @ W.T + z @ V.T + x_t @ U.T + b) - 1.7 * y - 2.3 * z)
        y = y + 0.2 * z
        seen.append(y)
    h, final = recurrence(cell, x)
    np.testing.assert_allclose(h.detach().numpy().transpose(1, 0, 2), seen, rtol=0, atol=1e-13)
    np.testing.assert_allclose([s.detach().numpy() for s in final], [y, z], rtol=0, atol=1e-13)


def test_without_force_it_is_a_damped_oscillator() -> None:
    """Zero weights: (y, z) moves by one matrix, whose powers are known."""
    cell = random_cell(CoRNN, dt=0.1, gamma=2.0, epsilon=0.5)
    with torch.no_grad():
        for p in cell.parameters():
            p.zero_()
    y, z = draw(2, 4), draw(2, 4, seed=1)
    _, (after, _) = recurrence(cell, torch.zeros(2, 30, 3).double(), (y, z))
    push = np.array([[-0.1 * 2.0, 1 - 0.1 * 0.5]])
    step = np.concatenate([np.array([[1.0, 0.0]]) + 0.1 * push, push])
    both = np.linalg.matrix_power(step, 30) @ np.stack([y.numpy(), z.numpy()]).reshape(2, -1)
    np.testing.assert_allclose(after.detach().numpy().ravel(), both[0], atol=1e-12)
