"""minGRU and minLSTM against loops in NumPy, their sizes, and what a gate does at its ends."""

from typing import Any

import numpy as np
import pytest
import torch

import orthobench
from orthobench.cells.mingru import MinGRU, drive
from orthobench.cells.minlstm import MinLSTM
from orthobench.errors import ConfigError
from orthobench.scan import recurrence
from tests.making import draw, random_cell, sigmoid


def g(candidate: str, v: np.ndarray) -> np.ndarray:
    return v if candidate == "identity" else np.where(v >= 0, v + 0.5, sigmoid(v))


def gates(cell: Any, x_t: np.ndarray) -> list[np.ndarray]:
    """What every gate gets of an input."""
    blocks = zip(cell.U.detach().numpy().reshape(len(cell.gates), -1, 3), cell.gates, strict=True)
    return [x_t @ U.T + cell.b[gate].detach().numpy() for U, gate in blocks]


@pytest.mark.parametrize("candidate", ["positive", "identity"])
@pytest.mark.parametrize("cls", [MinGRU, MinLSTM])
def test_against_a_loop_in_numpy(cls: Any, candidate: str) -> None:
    cell, x, h, seen = random_cell(cls, candidate=candidate), 3 * draw(2, 6, 3), draw(2, 4, seed=5).numpy(), []
    found, _ = recurrence(cell, x, (torch.from_numpy(h),))
    for x_t in x.numpy().transpose(1, 0, 2):
        *own, v = gates(cell, x_t)
        if cls is MinGRU:
            z = sigmoid(own[0])
            h = (1 - z) * h + z * g(candidate, v)
        else:
            f, i = sigmoid(own[0]), sigmoid(own[1])
            h = f / (f + i) * h + i / (f + i) * g(candidate, v)
        seen.append(h)
    np.testing.assert_allclose(found.detach().numpy().transpose(1, 0, 2), seen, rtol=0, atol=1e-13)


def test_the_published_scan_in_logarithms_gives_the_same() -> None:
    """h = exp(cumsum(ln a) + logcumsumexp(ln b - cumsum(ln a))), which is why the paper's candidate is positive."""
    cell, x = random_cell(MinGRU), draw(2, 9, 3)
    a, b = (t.detach() for t in cell.coefficients(cell.project(x), ()))
    total = a.log().cumsum(0)
    expected = (total + torch.logcumsumexp(b.log() - total, dim=0)).exp()
    torch.testing.assert_close(recurrence(cell, x)[0].detach().transpose(0, 1), expected, rtol=1e-12, atol=1e-12)


def test_the_candidate_is_continuous_and_positive() -> None:
    v = torch.tensor([-800.0, -1e-9, 0.0, 1e-9, 3.0], dtype=torch.float64)
    found = drive("positive", v)
    assert (found >= 0).all()
    torch.testing.assert_close(found[1:4], torch.full((3,), 0.5).double(), atol=1e-8, rtol=0)
    assert found[4] == 3.5


@pytest.mark.parametrize("size", [-2000.0, 2000.0])
def test_gates_that_vanish_both_leave_finite_numbers(size: float) -> None:
    cell = random_cell(MinLSTM).float()
    with torch.no_grad():
        cell.b["f"].fill_(size)
        cell.b["i"].fill_(size)
    h, _ = recurrence(cell, draw(2, 5, 3).float())
    h.sum().backward()
    assert torch.isfinite(h).all()
    assert torch.isfinite(cell.U.grad).all()


def test_without_a_recurrent_matrix_there_is_no_parametrization() -> None:
    with pytest.raises(ConfigError, match="MinGRU has no recurrent matrix"):
        orthobench.build("model=mingru", "model.recurrent=scaled_cayley")
