"""The Lipschitz and the antisymmetric network against loops in NumPy, and their sizes."""

import numpy as np
import pytest

import orthobench
from orthobench.cells.lipschitz import Lipschitz
from orthobench.parametrizations.antisymmetric import Antisymmetric
from orthobench.parametrizations.skew_symmetric import SkewSymmetric
from orthobench.scan import recurrence
from tests.making import draw, random_cell


@pytest.mark.parametrize("linear", [True, False])
def test_against_a_loop_in_numpy(linear: bool) -> None:
    cell, x = random_cell(Lipschitz, eps=0.2, linear=linear, recurrent=SkewSymmetric), draw(2, 6, 3)
    *A, W = (parametrization.M.detach().numpy() for parametrization in cell.recurrent.values())
    A, W = (0.75 * (M - M.T) + 0.25 * (M + M.T) - 0.001 * np.eye(4) for M in (A[0] if linear else W, W))
    U, b, h, seen = cell.U.detach().numpy(), cell.b["h"].detach().numpy(), np.zeros((2, 4)), []
    for x_t in x.numpy().transpose(1, 0, 2):
        h = h + 0.2 * (linear * h @ A.T + np.tanh(h @ W.T + x_t @ U.T + b))
        seen.append(h)
    found, _ = recurrence(cell, x)
    np.testing.assert_allclose(found.detach().numpy().transpose(1, 0, 2), seen, rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    ("words", "cell_size"),
    [
        (("model=lipschitz_rnn", "task=mnist"), 2 * 128**2 + 128 * 2),
        (("model=antisymmetric_rnn", "task=mnist", "model.hidden_size=128"), 128 * 127 // 2 + 128 * 2),
    ],
)
def test_size(words: tuple[str, ...], cell_size: int) -> None:
    (cell,) = orthobench.build(*words).model.cells
    assert sum(p.numel() for p in cell.parameters()) == cell_size


def test_the_antisymmetric_network_has_one_matrix() -> None:
    cell = random_cell(Lipschitz, linear=False, recurrent=Antisymmetric)
    assert list(cell.recurrent) == ["W"]
    assert isinstance(cell.recurrent["W"], Antisymmetric)
