"""The compiled loops of cells whose state is a matrix: borders of blocks and chunks, and the convolution."""

from itertools import chain, product
from typing import Any

import pytest
import torch
from torch import Tensor

from orthobench import layers
from orthobench.bench.cells import make_cell
from orthobench.bench.scans import saved_bytes
from orthobench.cells.deltaproduct import DeltaProduct
from orthobench.cells.gated_outer import GatedOuter
from orthobench.cells.mlstm import MLSTM
from orthobench.scan import ENGINES, recurrence, reference
from orthobench.scan.fused import convolution as fused
from orthobench.scan.native import convolution as native
from orthobench.scan.native import engine, matrix_memory
from orthobench.scan.native.library import missing
from tests.making import draw
from tests.scan.native.cases import assert_as_near_as_the_loop, assert_equal, make, results, start

pytestmark = pytest.mark.skipif(missing(torch.float64) is not None, reason="no C compiler here")
CELLS: dict[str, tuple[type, dict[str, Any]]] = {
    "deltanet": (DeltaProduct, {"heads": 2, "key_width": 5, "value_width": 19, "output_gate": "silu"}),
    "gated": (DeltaProduct, {"heads": 2, "products": 3, "gated": True, "scaled_query": True}),
    "gated deltanet": (GatedOuter, {"heads": 2, "key_width": 5, "value_width": 19, "negative": True}),
    "no decay": (GatedOuter, {"heads": 1, "decay": "none", "output_gate": "none", "convolution": None}),
    "mlstm": (MLSTM, {"heads": 2, "gate_inputs": "qkv", "key_width": 3}),
    "mlstm, gates of x": (MLSTM, {"heads": 1, "convolution": 6}),
}
every_cell = pytest.mark.parametrize("name", CELLS)


@pytest.mark.parametrize("T", [1, 16, 17, 65])
@every_cell
def test_borders_of_chunks_and_blocks(name: str, T: int) -> None:
    cls, options = CELLS[name]
    cell = make(cls, **options)
    assert_equal(cell, draw(2, T, 3), start(cell, 2))


def test_more_writes_than_a_block_has() -> None:
    cell = make(DeltaProduct, heads=1, products=70)
    assert_equal(cell, draw(2, 2, 3), start(cell, 2))


@every_cell
def test_borders_of_units(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix_memory, "STEPS", 8)
    cls, options = CELLS[name]
    cell = make(cls, **options)
    assert_equal(cell, draw(9, 5, 3), start(cell, 9))


@every_cell
def test_windows_of_several_blocks(name: str) -> None:
    cls, options = CELLS[name]
    cell = make(cls, input_size=150, **options)
    assert_equal(cell, draw(2, 200, 150), start(cell, 2))


@every_cell
def test_no_steps(name: str) -> None:
    cls, options = CELLS[name]
    cell = make(cls, **options)
    state = start(cell, 2)
    y, last = recurrence(cell, draw(2, 0, 3), state, engine="native")
    assert y.shape == (2, 0, 8)
    assert all(torch.equal(found, before) for found, before in zip(last, state, strict=True))


@pytest.mark.parametrize("name", ["deltanet", "deltaproduct", "gated_deltanet", "mlstm"])
def test_the_usual_width_is_as_near_as_the_loop(name: str) -> None:
    cell = make_cell(name, 128, 40).double()
    assert_as_near_as_the_loop(cell, draw(3, 40, 16), cell.initial_state(3))


@pytest.mark.parametrize("T", [60, 150])
def test_a_convolution_longer_than_a_window(T: int) -> None:
    cell = make(DeltaProduct, heads=1, convolution=70)
    assert_equal(cell, draw(2, T, 3), start(cell, 2))


@pytest.mark.parametrize("gate", ["i", "f"])
@pytest.mark.parametrize("bias", [-1e4, -50.0, 50.0, 1e4])
def test_gates_of_an_mlstm_far_from_one(gate: str, bias: float) -> None:
    cell = make(MLSTM, heads=2)
    with torch.no_grad():
        cell.get_parameter(f"b.{gate}").fill_(bias)
    found, expected = (results(run, cell, draw(2, 20, 3), cell.initial_state(2)) for run in (engine.run, reference.run))
    for a, b in zip(chain(*found), chain(*expected), strict=True):
        assert a.isfinite().all()
        torch.testing.assert_close(a, b.expand_as(a), rtol=0, atol=1e-9 * (1 + float(b.abs().max())))  # eps times 1e4


def test_a_gate_that_is_shut_forgets_all() -> None:
    cell = make(DeltaProduct, heads=2, products=3, gated=True)
    with torch.no_grad():
        cell.get_parameter("A").fill_(12)
    assert_equal(cell, draw(2, 20, 3), start(cell, 2))


@pytest.mark.parametrize("which", [0, 1])
def test_states_that_do_not_fit_are_refused(which: int) -> None:
    cell = make(DeltaProduct, heads=2)
    state = [*start(cell, 2)]
    state[which] = state[which][..., :-1]
    with pytest.raises(ValueError, match=r"states .* do not fit: .* are needed"):
        engine.run(cell, draw(2, 4, 3), tuple(state))


@pytest.mark.parametrize("wide", [False, True])
@every_cell
def test_a_projection_of_another_width_is_refused(name: str, wide: bool) -> None:
    cls, options = CELLS[name]

    class Other(cls):  # type: ignore[misc,valid-type]
        def project(self, x: Tensor) -> Tensor:
            p = super().project(x)
            return torch.cat([p, p], -1) if wide else p[..., :-1]

    cell = make(Other, **options)
    with pytest.raises(ValueError, match=r"projection of width .* does not fit"):
        engine.run(cell, draw(2, 4, 3), start(cell, 2))


@pytest.mark.parametrize(
    ("name", "parameter"),
    [
        *product(("gated", "gated deltanet"), ("kernel", "A", "dt", "scale", "O")),
        *product(("mlstm",), ("kernel", "G", "scale", "b.f", "b.o")),
    ],
)
def test_a_parameter_of_another_shape_is_refused(name: str, parameter: str) -> None:
    """Also one that torch would broadcast, or none: C would read what lies behind it."""
    cls, options = CELLS[name]
    cell = make(cls, **options)
    module, _, leaf = parameter.rpartition(".")
    torch.nn.Module.__setattr__(cell.get_submodule(module), leaf, torch.nn.Parameter(cell.get_parameter(parameter)[:1]))
    with pytest.raises(ValueError, match=r"does not fit: .* is needed"):
        engine.run(cell, draw(2, 4, 3), start(cell, 2))
    delattr(cell.get_submodule(module), leaf)
    with pytest.raises(AttributeError, match=f"has no attribute '{leaf}'"):
        engine.run(cell, draw(2, 4, 3), start(cell, 2))


@every_cell
def test_inputs_of_another_width_are_refused(name: str) -> None:
    cls, options = CELLS[name]
    cell = make(cls, **options)
    with pytest.raises(ValueError, match=r"U \(.*\) does not fit: .*, 4\) is needed"):
        engine.run(cell, draw(2, 4, 4), start(cell, 2))


@pytest.mark.parametrize("taps", [1, 3, 6])
@pytest.mark.parametrize("has_shift", [False, True])
@pytest.mark.parametrize("convolve", [native.convolve, fused.convolve], ids=["native", "fused"])
def test_the_convolution_against_torchs(convolve: Any, has_shift: bool, taps: int) -> None:
    parts = [
        draw(2, 5, 3),
        draw(2, taps - 1, 3, seed=1),
        draw(taps, 3, seed=2),
        *([draw(3, seed=3)] if has_shift else []),
    ]
    x, before, kernel, *shift = (part.requires_grad_() for part in parts)
    whole = torch.cat([before, x], 1)
    z = torch.nn.functional.conv1d(whole.transpose(1, 2), kernel.T[:, None], *shift, groups=3).transpose(1, 2)
    expected, outside = torch.nn.functional.silu(z), draw(2, 5, 3, seed=4)
    found, latest = convolve(x, before, kernel, *shift)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    assert torch.equal(latest, whole[:, whole.shape[1] - taps + 1 :])
    for one, other in zip(*(torch.autograd.grad(y, parts, outside) for y in (found, expected)), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


@pytest.mark.parametrize("shift", [draw(4), draw(3).float(), draw(1, 3)])
def test_a_shift_that_does_not_fit_is_refused(shift: Tensor) -> None:
    with pytest.raises(ValueError, match="do not fit"):
        native.convolve(draw(2, 5, 3), draw(2, 2, 3), draw(3, 3), shift)


@pytest.mark.parametrize(
    ("before", "kernel"),
    [
        (draw(2, 1, 3), draw(3, 3)),
        (draw(2, 2, 3), draw(3, 4)),
        (draw(2, 2, 3).float(), draw(3, 3)),
        (draw(2, 2, 3), draw(3, 3).float()),
    ],
)
def test_a_kernel_that_does_not_fit_is_refused(before: Tensor, kernel: Tensor) -> None:
    with pytest.raises(ValueError, match=r"before them and a kernel .* do not fit"):
        native.convolve(draw(2, 5, 3), before, kernel)


@pytest.mark.parametrize("model", ["deltanet", "deltaproduct", "gated_deltanet", "mlstm", "pdssm"])
def test_the_estimate_of_memory_knows_that_states_are_not_kept(model: str) -> None:
    cell, x = make_cell(model, 64, 96), torch.randn(2, 96, 16)
    kept, engine = saved_bytes(cell, x, "native") / x.element_size() / (2 * 96), ENGINES["native"]
    assert kept <= engine.peak(cell) < ENGINES["reference"].peak(cell) / 4


@pytest.mark.parametrize("value", [1.0, 1e3])
def test_queries_whose_squares_are_too_small(value: float) -> None:
    """Queries of 1e-20 behind an open input gate: what they recall is divided by as small a number."""
    layer = layers.MLSTM(1, 2, heads=1, engine="native")
    cell = layer.cells[0]
    with torch.no_grad():
        cell.U.zero_()
        cell.U[:2], cell.U[2:4] = -50, 1
        cell.U[4, 0], cell.U[5, 0] = value, -value
        cell.kernel.zero_()
        cell.kernel[-1] = 1
        cell.b["i"].fill_(60)
    x = torch.ones(3, 1, 1, requires_grad=True)
    y, _ = layer(x)
    torch.testing.assert_close(y[-1, 0], torch.tensor([-0.5, 0.5]), rtol=0, atol=1e-4)
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.isfinite().all()
