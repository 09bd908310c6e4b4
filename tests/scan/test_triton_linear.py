"""The Triton kernels of cells that are linear in their state, in the package's interpreter, against the plain loop."""

import copy
from typing import Any

import pytest
import torch

from orthobench.cells.base import Cell
from orthobench.cells.deltaproduct import DeltaProduct
from orthobench.cells.gated_outer import GatedOuter
from orthobench.cells.lru import LRU
from orthobench.cells.mamba2 import Mamba2
from orthobench.cells.mingru import MinGRU
from orthobench.cells.minlstm import MinLSTM
from orthobench.cells.mlstm import MLSTM
from orthobench.cells.rotation import Rotation
from orthobench.cells.rwkv7 import RWKV7
from orthobench.scan import reference
from orthobench.scan.gpu import choice
from orthobench.scan.triton import engine as triton
from tests.making import draw, random_cell
from tests.scan.laws import every_law, members_have_the_numbers_of_each
from tests.scan.native.cases import assert_equal, results, start
from tests.scan.test_triton import interpreted

DIAGONAL: dict[str, tuple[type, dict[str, Any]]] = {
    "lru": (LRU, {}),
    "mingru": (MinGRU, {}),
    "minlstm": (MinLSTM, {}),
    "rotation": (Rotation, {}),
}
MATRIX: dict[str, tuple[type, dict[str, Any]]] = {
    "deltanet": (DeltaProduct, {"heads": 1, "negative": False}),
    "deltaproduct, gated": (DeltaProduct, {"heads": 2, "products": 3, "gated": True}),
    "mlstm": (MLSTM, {"heads": 2}),
    "mlstm, other keys": (MLSTM, {"heads": 2, "gate_inputs": "qkv", "key_width": 3, "convolution": None}),
    "gated deltanet": (GatedOuter, {"heads": 2, "key_width": 5, "value_width": 19}),
    "kda": (GatedOuter, {"heads": 2, "decay": "vector", "key_width": 17}),
    "gla": (GatedOuter, {"heads": 1, "decay": "sigmoid", "rule": "add", "convolution": None}),
    "split": (GatedOuter, {"heads": 1, "decay": "none", "rule": "split"}),
    "mamba2": (Mamba2, {"heads": 2, "key_width": 3}),
    "rwkv7": (RWKV7, {"heads": 2, "rank": 2}),
}
CASES = {**DIAGONAL, **MATRIX}
LENGTHS = [1, 5, 31, 64, 100]
MATRIX_LENGTHS = [
    *((name, T) for name in MATRIX for T in (1, 5)),
    *((name, T) for name in ("deltanet", "mlstm", "kda") for T in (31, 64)),
    *(pytest.param(name, T, marks=pytest.mark.slow) for name in MATRIX for T in (31, 64, 100)),
]
every_case = pytest.mark.parametrize("name", CASES)


def make(name: str) -> Cell:
    """A cell in float64 with random weights, of three inputs."""
    cls, options = CASES[name]
    return random_cell(cls, hidden_size=8, **options)


@interpreted
@pytest.mark.parametrize(("name", "T"), [*((name, T) for name in DIAGONAL for T in LENGTHS), *MATRIX_LENGTHS])
def test_equals_the_loop(name: str, T: int) -> None:
    """Outputs to 1e-12 and all gradients to 1e-10 of the largest, in float64, from a state that is not zero."""
    cell, B = make(name), 2 if T < 64 else 1
    assert triton.why_not(cell) is None
    assert_equal(cell, draw(B, T, 3), start(cell, B), triton.run)


@interpreted
@every_case
def test_float32_is_near_the_loop_in_float64(name: str) -> None:
    """Outputs to 1e-5, gradients to 1e-4 of the largest, over more steps than are computed at once."""
    cell = make(name)
    x, state = draw(2, 36, 3), start(cell, 2)
    exact, single = results(reference.run, cell, x, state), copy.deepcopy(cell).float()
    near = tuple(s.to(torch.complex64 if s.is_complex() else torch.float32) for s in state)
    found = results(triton.run, single, x.float(), near)
    for tolerance, own, wanted in zip((1e-5, 1e-4), found, exact, strict=True):
        for a, b in zip(own, wanted, strict=True):
            torch.testing.assert_close(
                a.to(b.dtype), b.expand_as(a), rtol=0, atol=tolerance * (1 + float(b.abs().max()))
            )


@interpreted
@pytest.mark.parametrize("name", DIAGONAL)
def test_more_units_than_a_program_has(name: str) -> None:
    cls, options = CASES[name]
    cell = random_cell(cls, hidden_size=45, **options)
    assert_equal(cell, draw(3, 7, 3), start(cell, 3), triton.run)


@interpreted
@every_law
@every_case
def test_laws(name: str, law: Any) -> None:
    law(triton.run, make(name))


@interpreted
@every_case
def test_members_under_vmap_have_the_numbers_of_each(name: str) -> None:
    members_have_the_numbers_of_each(triton.run, make(name))


@interpreted
@every_case
def test_a_sequence_repeats_itself_bit_by_bit_whatever_is_beside_it(name: str) -> None:
    cell, x = make(name), draw(3, 9, 3)
    whole = triton.run(cell, x, cell.initial_state(3))[0]
    assert torch.equal(whole, triton.run(cell, x, cell.initial_state(3))[0])


@interpreted
@every_case
def test_the_kernels_pass_their_trial(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "_FAILURES", {})
    assert choice.failure("triton", make(name).float()) is None
    assert list(choice._FAILURES.values()) == [None]
