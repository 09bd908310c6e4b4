"""Gates and phases far from where they start, in the compiled loops of minGRU, minLSTM and Rotation."""

import copy
import platform
from itertools import chain
from typing import Any

import numpy as np
import pytest
import torch

from orthobench.cells.lstm import LSTM
from orthobench.cells.mingru import MinGRU
from orthobench.cells.minlstm import MinLSTM
from orthobench.cells.rotation import Rotation
from orthobench.scan import reference
from orthobench.scan.native import engine
from tests.making import draw, random_cell
from tests.scan.native.cases import assert_equal, make, results, start

pytestmark = pytest.mark.skipif(engine.why_not(random_cell(LSTM)) is not None, reason="no C compiler here")


@pytest.mark.parametrize("bias", [-1e4, -100.0, -30.0, 30.0, 100.0, 1e4])
@pytest.mark.parametrize(
    ("cls", "gates"),
    [(MinGRU, "z"), (MinGRU, "h"), (MinLSTM, "f"), (MinLSTM, "i"), (MinLSTM, "fi"), (MinLSTM, "h"), (Rotation, "a")],
    ids=str,
)
def test_gates_far_from_zero_in_float32(cls: type, gates: str, bias: float) -> None:
    """Against the plain loop in float64; the gates see no input, so that no projection is rounded."""
    cell = make(cls)
    with torch.no_grad():
        for gate in gates:
            cell.U.chunk(len(cell.gates))[cell.gates.index(gate)].zero_()
            cell.b[gate].copy_((bias + draw(8)).float())
    x, state, single = draw(2, 20, 3), start(cell, 2), copy.deepcopy(cell).float()
    near = tuple(s.to(torch.complex64 if s.is_complex() else torch.float32) for s in state)
    found, expected = results(engine.run, single, x.float(), near), results(reference.run, cell, x, state)
    for a, b in zip(chain(*found), chain(*expected), strict=True):
        assert a.isfinite().all()
        torch.testing.assert_close(a.to(b.dtype), b.expand_as(a), rtol=1e-4, atol=1e-12 + 1e-5 * float(b.abs().max()))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("largest", [1e-3, 3.0, 1e3, 8e3, 9e3, 9e5, 2e6, 1e12])
def test_the_phases_are_turned_by_what_they_are(largest: float, dtype: torch.dtype) -> None:
    """Against NumPy in double precision of the same phases, to one or two units in the last place."""
    n = 999
    cell = random_cell(Rotation, input_size=1, hidden_size=n, unitary=True).to(dtype)
    phi = torch.linspace(-largest, largest, n, dtype=torch.float64).to(dtype)
    with torch.no_grad():
        cell.U.zero_()
        cell.b["phi"].copy_(phi)
    h0 = torch.ones(1, n, dtype=dtype.to_complex())
    (h,), _ = engine.run(cell, torch.zeros(1, 1, 1, dtype=dtype), (h0,))
    exact = phi.double().numpy()
    error = np.abs(h[0].detach().numpy() - (np.cos(exact) + 1j * np.sin(exact)))
    assert error.max() < 2 * torch.finfo(dtype).eps


@pytest.mark.parametrize("cls", [MinGRU, MinLSTM])
def test_the_candidate_at_its_kink(cls: type) -> None:
    cell = make(cls)
    with torch.no_grad():
        cell.U.chunk(len(cell.gates))[-1].zero_()
        cell.b["h"].zero_()
    assert_equal(cell, draw(2, 5, 3), start(cell, 2))


@pytest.mark.parametrize("cls", [MinGRU, Rotation])
def test_no_steps(cls: type) -> None:
    cell = make(cls)
    state = tuple(s.requires_grad_() for s in start(cell, 2))
    h, last = engine.run(cell, draw(2, 0, 3), state)
    assert h.shape == (2, 0, 8)
    assert torch.equal(last[0], state[0])
    (found,) = torch.autograd.grad(h.abs().sum() + 3 * last[0].real.sum(), state)
    assert torch.equal(found.real, torch.full((2, 8), 3.0, dtype=torch.float64))


def test_a_projection_of_another_width_is_refused() -> None:
    class Wide(Rotation):
        def project(self, x: torch.Tensor) -> Any:
            return super().project(x).repeat(1, 1, 2)

    cell = make(Wide)
    with pytest.raises(ValueError, match="projection of width 64 does not fit 8 units with 4 gates"):
        engine.run(cell, draw(2, 5, 3), start(cell, 2))


def test_a_bias_of_another_length_is_refused() -> None:
    cell = make(MinGRU)
    cell.b["h"] = torch.nn.Parameter(draw(1))
    with pytest.raises(ValueError, match=r"bias \(9,\) does not fit: \(16,\) is needed"):
        engine.run(cell, draw(2, 5, 3), start(cell, 2))


@pytest.mark.skipif(platform.machine().lower() not in ("x86_64", "amd64", "aarch64"), reason="nothing is flushed there")
def test_denormal_numbers_count_as_zero_in_the_loops_alone() -> None:
    cell = make(MinGRU, candidate="identity").float()
    with torch.no_grad():
        cell.U.zero_()
        for bias in cell.b.values():
            bias.zero_()
    h, _ = engine.run(cell, draw(2, 3, 3).float(), (torch.full((2, 8), 1e-39),))
    assert not h.any()
    assert (torch.full((4,), 1e-39) * 0.5).all()
