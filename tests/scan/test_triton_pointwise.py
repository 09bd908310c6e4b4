"""The LSTM's kernels, and the loop of small kernels that a GPU runs where no kernel has a cell's whole loop."""

import importlib
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from orthobench.cells.base import State
from orthobench.cells.elman import Elman
from orthobench.cells.lstm import LSTM
from orthobench.cells.lstm_chrono import LSTMChrono
from orthobench.cells.scalar_gated import ScalarGated
from orthobench.parametrizations.scaled_cayley import ScaledCayley
from orthobench.scan import reference
from orthobench.scan.fused import engine as fused
from orthobench.scan.triton import engine as triton
from tests.making import draw
from tests.scan.native.cases import assert_equal, results
from tests.scan.test_engines import every_activation, tame
from tests.scan.test_triton import interpreted


class Counted(TorchDispatchMode):
    """Counts torch's operations that compute anything."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The pointwise kernels of the loop, as on a GPU; their launches are noted."""
    launches: list[str] = []
    module = importlib.import_module("orthobench.scan.triton.pointwise")
    launch = module._launch
    monkeypatch.setattr(
        module, "_launch", lambda kernel, *a: (launches.append(kernel.fn.__name__), launch(kernel, *a))[1]
    )
    monkeypatch.setattr(importlib.import_module("orthobench.scan.fused.pointwise"), "in_one_kernel", lambda like: True)
    return launches


@interpreted
@every_activation
@pytest.mark.parametrize("cls", [Elman, ScalarGated])
def test_the_loop_of_small_kernels_has_one_for_an_activation(cls: type, activation: Any, launched: list[str]) -> None:
    cell = tame(cls, 5, activation=activation)
    assert_equal(cell, draw(3, 4, 3), (draw(3, 5, seed=1),), fused.run)
    assert launched == ["activate_"] * 4 + ["reverse"] * 4
    state = (torch.full((2, 5), torch.nan, dtype=torch.float64),)
    assert fused.run(cell, draw(2, 3, 3), state)[0].isnan().all()


@interpreted
def test_a_step_of_the_loop_is_two_operations_forward_and_two_backward(launched: list[str]) -> None:
    """Beside one of Triton's: addmm_ forward; addmm backward, which is a copy and a product on a GPU."""
    counts = []
    for T in (4, 12):
        launched.clear()
        cell, x = tame(Elman, 5, activation="modrelu"), draw(3, T, 3)
        with Counted() as forward:
            h_BTN, _ = fused.run(cell, x, cell.initial_state(3))
        with Counted() as backward:
            h_BTN.backward(torch.ones_like(h_BTN))
        works = [[name for name in mode.names if name.startswith(("add", "mul", "mm"))] for mode in (forward, backward)]
        counts.append((len(works[0]), len(works[1]), len(launched)))
    assert [b - a for a, b in zip(*counts, strict=True)] == [8, 8, 16]


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
