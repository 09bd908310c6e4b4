"""The published scan of minGRU, and what a gate of it and of minLSTM does at its ends."""

import pytest
import torch

import orthobench
from orthobench.cells.mingru import MinGRU, drive
from orthobench.cells.minlstm import MinLSTM
from orthobench.errors import ConfigError
from orthobench.scan import recurrence
from tests.making import draw, random_cell


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
