"""The LSTM's kernels in the package's interpreter, against the plain loop; test_compiled.py compiles them for GPUs."""

from typing import Any

import pytest
import torch

from orthobench.cells.base import State
from orthobench.cells.lstm import LSTM
from orthobench.cells.lstm_chrono import LSTMChrono
from orthobench.parametrizations.scaled_cayley import ScaledCayley
from orthobench.scan import reference
from orthobench.scan.triton import engine as triton
from tests.making import draw
from tests.scan.native.cases import assert_equal, results
from tests.scan.test_engines import tame
from tests.scan.test_triton import interpreted


def start(B: int, n: int) -> State:
    """h_0 and c_0."""
    return draw(B, n, seed=1), draw(B, n, seed=2)


@interpreted
@pytest.mark.parametrize(
    ("n", "B", "T"), [(1, 1, 1), (1, 3, 5), (5, 3, 4), (17, 1, 9), (17, 3, 1), (33, 3, 3), (70, 1, 2), (100, 3, 2)]
)
def test_equals_the_loop(n: int, B: int, T: int) -> None:
    """Both results and the gradients of all parameters, the input, h_0 and c_0; 100 units are not all in registers."""
    assert_equal(tame(LSTM, n), draw(B, T, 3), start(B, n), triton.run)


@interpreted
@pytest.mark.parametrize(
    ("cls", "options"),
    [
        (LSTM, {"double_bias": True}),
        (LSTM, {"forget_bias": None, "orthogonal": ["i", "f", "g", "o"], "recurrent": ScaledCayley}),
        (LSTMChrono, {"T_max": 9}),
    ],
)
def test_every_cell_with_these_equations(cls: type, options: dict[str, Any]) -> None:
    cell = tame(cls, 6, **options)
    assert triton.why_not(cell) is None
    assert_equal(cell, draw(3, 4, 3), start(3, 6), triton.run)


@interpreted
@pytest.mark.parametrize("broken", [0, 1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_state_that_is_not_a_number_stays_so(broken: int, dtype: torch.dtype) -> None:
    """h_0 spreads through the matrices to all units, c_0 is each unit's own and spreads at the next step."""
    bits, like = (0x7FFFFFFF, torch.int32) if dtype == torch.float32 else (0x7FFFFFFF << 32 | 0xFFFFFFFF, torch.int64)
    state = [s.to(dtype) for s in start(2, 5)]
    state[broken][:, 1] = torch.full((2,), bits, dtype=like).view(dtype)
    h_BTN, final = triton.run(tame(LSTM, 5).to(dtype), draw(2, 4, 3).to(dtype), tuple(state))
    assert h_BTN[:, broken:].isnan().all()
    assert all(s.isnan().all() for s in final)


@interpreted
@pytest.mark.filterwarnings("ignore:overflow encountered in exp")  # to infinity, whose inverse is the gate's zero
def test_saturated_gates_are_finite() -> None:
    cell, found = tame(LSTM, 5).float(), []
    with torch.no_grad():
        for p in cell.b.values():
            p.mul_(1000)
    x, state = draw(2, 3, 3).float(), tuple(s.float() for s in start(2, 5))
    for engine in (triton, reference):
        found.append([t for part in results(engine.run, cell, x, state) for t in part])
    torch.testing.assert_close(*found, rtol=1e-5, atol=1e-6)
    assert all(t.isfinite().all() for t in found[0])
