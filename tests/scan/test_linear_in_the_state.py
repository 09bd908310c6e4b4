"""The recurrences that are linear in their state, by products over many steps in PyTorch, against the plain loop."""

from itertools import chain
from typing import Any

import numpy as np
import pytest
import torch

from orthobench.cells.base import Cell
from orthobench.cells.convolution import InputConvolution
from orthobench.cells.deltaproduct import DeltaProduct
from orthobench.cells.lru import LRU
from orthobench.cells.mingru import MinGRU
from orthobench.cells.minlstm import MinLSTM
from orthobench.cells.mlstm import MLSTM
from orthobench.cells.rotation import Rotation
from orthobench.scan import reference
from orthobench.scan.fused import engine as fused
from orthobench.scan.graph import capture
from orthobench.scan.graph import engine as graph
from tests.making import draw, random_cell
from tests.scan import laws
from tests.scan.laws import every_law
from tests.scan.native.cases import assert_as_near_as_the_loop, assert_equal, results, start
from tests.scan.test_graph import Again

CASES: dict[str, tuple[type, dict[str, Any]]] = {
    "lru": (LRU, {}),
    "mingru": (MinGRU, {}),
    "minlstm": (MinLSTM, {}),
    "rotation": (Rotation, {}),
    "deltanet": (DeltaProduct, {"heads": 1, "negative": False}),
    "deltaproduct, gated": (DeltaProduct, {"heads": 2, "products": 3, "gated": True}),
    "deltaproduct, no convolution": (DeltaProduct, {"heads": 1, "products": 2, "convolution": None}),
    "more writes than a window has": (DeltaProduct, {"heads": 1, "products": 40}),
    "deltanet, convolution of one step": (DeltaProduct, {"heads": 4, "convolution": 1, "gated": True}),
    "mlstm": (MLSTM, {"heads": 2}),
    "mlstm, orthogonal reads": (MLSTM, {"heads": 2, "read": "orthogonal", "key_width": 3}),
    "mlstm, no convolution": (MLSTM, {"heads": 4, "convolution": None}),
    "convolution": (InputConvolution, {}),  # it has no recurrence at all
}
every_case = pytest.mark.parametrize("name", CASES)


def make(name: str) -> Cell:
    """A cell in float64 with random weights, of three inputs."""
    cls, options = CASES[name]
    if cls is InputConvolution:
        return InputConvolution(3, 4, np.random.default_rng(0)).double()
    return random_cell(cls, hidden_size=8, **options)


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (4, 2), (5, 31), (3, 33), (2, 100)], ids=str)
@every_case
def test_any_batch_and_length(name: str, shape: tuple[int, int]) -> None:
    cell = make(name)
    assert_equal(cell, draw(*shape, 3), start(cell, shape[0]), fused.run)


@every_law
@every_case
def test_laws(name: str, law: Any) -> None:
    if name != "convolution" or law is not laws.not_a_number_stays_so:  # it forgets
        law(fused.run, make(name))


@every_case
def test_float32_is_as_near_to_float64_as_the_loop(name: str) -> None:
    cell = make(name)
    assert_as_near_as_the_loop(cell, draw(6, 100, 3), start(cell, 6), fused.run)


@pytest.mark.parametrize("gate", ["i", "f"])
@pytest.mark.parametrize("bias", [-1e4, -50.0, 50.0, 1e4])
def test_gates_of_an_mlstm_far_from_one(gate: str, bias: float) -> None:
    cell = make("mlstm").float()
    with torch.no_grad():
        cell.b[gate].fill_(bias)
    x, state = draw(2, 70, 3).float(), cell.initial_state(2)
    found, expected = results(fused.run, cell, x, state), results(reference.run, cell, x, state)
    for a, b in zip(chain(*found), chain(*expected), strict=True):
        assert a.isfinite().all()
        torch.testing.assert_close(a, b.expand_as(a), rtol=1e-3, atol=1e-6 + 1e-3 * float(b.abs().max()))


def test_a_gate_that_is_shut_forgets_all() -> None:
    cell = make("deltaproduct, gated").float()
    with torch.no_grad():
        cell.A.fill_(12)
    x, state = draw(2, 70, 3).float(), start(cell, 2)
    found, expected = (run(cell, x, tuple(s.float() for s in state))[0] for run in (fused.run, reference.run))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@every_case
def test_as_graphs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture, "Graph", Again)
    monkeypatch.setattr(capture.Shelf, "closed", False)
    cell, x = make(name), draw(3, 40, 3)
    state, before = start(cell, 3), Again.replays
    graph.run(cell, x, state)
    for scale in (1, 2):
        assert_equal(cell, scale * x, state, graph.run)
    assert Again.replays > before
