"""Cells that are steps of a differential equation: oscillators, LEM and the Lipschitz network."""

import numpy as np
import pytest
import torch

import orthobench
from orthobench.cells.cornn import CoRNN
from orthobench.cells.lem import LEM
from orthobench.cells.unicornn import UnICORNN
from orthobench.scan import recurrence
from tests.making import draw, random_cell


@pytest.mark.parametrize("T", [1, 40])
def test_the_states_of_lem_stay_in_the_unit_box(T: int) -> None:
    cell = random_cell(LEM)
    _, final = recurrence(cell, 100 * draw(3, T, 3))
    assert all(0.5 < s.abs().max() <= 1 for s in final), "near its edge, as the inputs are large"


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


@pytest.mark.parametrize(
    ("words", "cell_size"),
    [
        (("model=lipschitz_rnn", "task=mnist"), 2 * 128**2 + 128 * 2),
        (("model=antisymmetric_rnn", "task=mnist", "model.hidden_size=128"), 128 * 127 // 2 + 128 * 2),
    ],
)
def test_size(words: tuple[str, ...], cell_size: int) -> None:
    """The antisymmetric network has one matrix, of half the numbers."""
    (cell,) = orthobench.build(*words).model.cells
    assert sum(p.numel() for p in cell.parameters()) == cell_size
