"""Undamped oscillators against a loop in NumPy, their size, their start and what a symplectic step keeps."""

import numpy as np
import torch

import orthobench
from orthobench.cells.unicornn import UnICORNN
from orthobench.scan import recurrence
from tests.making import draw, random_cell


def loop(cell: UnICORNN, x: np.ndarray) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    U, b, w, c = (p.detach().numpy() for p in (cell.U, cell.b["z"], cell.w, cell.c))
    pace = cell.dt / (1 + np.exp(-c))
    y, z, seen = np.zeros((2, 4)), np.zeros((2, 4)), []
    for x_t in x.transpose(1, 0, 2):
        z = z - pace * (np.tanh(w * y + x_t @ U.T + b) + cell.alpha * y)
        y = y + pace * z
        seen.append(y)
    return seen, y, z


def test_against_a_loop_in_numpy() -> None:
    cell, x = random_cell(UnICORNN, dt=0.4, alpha=1.7), draw(2, 6, 3)
    seen, *last = loop(cell, x.numpy())
    h, final = recurrence(cell, x)
    np.testing.assert_allclose(h.detach().numpy().transpose(1, 0, 2), seen, rtol=0, atol=1e-13)
    np.testing.assert_allclose([s.detach().numpy() for s in final], last, rtol=0, atol=1e-13)


def test_states_can_be_rebuilt_backwards() -> None:
    """The step is invertible: the first state comes back from the last one, which is what the paper saves memory by."""
    cell, x, first = random_cell(UnICORNN, dt=0.4), draw(2, 50, 3), (draw(2, 4), draw(2, 4, seed=1))
    with torch.no_grad():
        _, (y, z) = recurrence(cell, x, first)
        (w, pace), p = cell.matrices(), cell.project(x)
        for p_t in reversed(p):
            y = y - pace * z
            z = z + pace * (torch.tanh(w * y + p_t) + cell.alpha * y)
    torch.testing.assert_close((y, z), first, rtol=0, atol=1e-11)


def test_a_step_keeps_areas_in_every_plane_of_a_unit() -> None:
    cell, p = random_cell(UnICORNN, dt=0.4), draw(1, 4)
    W = tuple(w.detach() for w in cell.matrices())

    def step(both: torch.Tensor) -> torch.Tensor:
        return torch.cat(cell.step(p, tuple(both.view(2, 1, 4)), W)).flatten()

    J = torch.autograd.functional.jacobian(step, draw(8)).view(2, 4, 2, 4).diagonal(dim1=1, dim2=3)
    torch.testing.assert_close(torch.linalg.det(J.permute(2, 0, 1)), torch.ones(4).double(), rtol=0, atol=1e-13)


def test_the_published_start() -> None:
    exp = orthobench.build("model=unicornn", "task=pmnist")
    assert exp.parameters["total"] == 256 * 4 + 2 * 256 * 259 + 256 * 10 + 10
    for cell, width in zip(exp.model.cells, (1, 256, 256), strict=True):
        assert cell.w.detach().min() >= 0
        assert 0.9 < cell.w.detach().max() < 1
        assert 0.09 < cell.c.detach().abs().max() <= 0.1
        bound = (6 / 65 / width) ** 0.5  # Kaiming's for a leaky ReLU of slope 8
        assert 0.97 * bound < cell.U.detach().abs().max() <= bound
        assert not cell.b["z"].any()
