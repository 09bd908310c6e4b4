"""The kernels of cells that are linear in their state on a GPU, against the plain loop in float64."""

import copy
import warnings
from typing import Any

import pytest
import torch

from orthobench.cells.base import Cell
from orthobench.cells.lru import LRU
from orthobench.cells.mingru import MinGRU
from orthobench.cells.rwkv7 import RWKV7
from orthobench.scan import choose, reference
from orthobench.scan.gpu import choice
from orthobench.scan.triton import engine as triton
from tests.making import draw, untouched_cell
from tests.scan.native.cases import results, start
from tests.scan.test_triton_linear import CASES

pytestmark = pytest.mark.gpu
WIDTHS = {"key_width": 24, "value_width": 40}


def make(name: str, heads_of: int, **options: Any) -> Cell:
    """A cell as it starts, of float32, whose heads have so many units."""
    cls, own = CASES[name]
    heads = own.get("heads", 4)
    own = {key: value for key, value in own.items() if not key.endswith("_width")}
    return untouched_cell(cls, hidden_size=heads * heads_of, **own, **options).float().cuda()


@pytest.fixture(scope="module", autouse=True)
def _first_product() -> None:
    """A backward pass by cuBLAS: the first on a thread may warn that it makes the thread's context current."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*no current CUDA context.*")
        x = torch.ones(8, 8, device="cuda", requires_grad=True)
        (x @ x).sum().backward()


SIZES = [(name, (16, 32, 64)[i % 3], (1, 5, 31, 64, 100)[i % 5]) for i, name in enumerate([*CASES, *CASES])]


@pytest.mark.parametrize(("name", "heads_of", "T"), SIZES)
def test_near_the_loop_in_float64(name: str, heads_of: int, T: int) -> None:
    """Outputs to 1e-5, gradients to 1e-4 of the largest, or as near as four times the loop's own distance."""
    check_near(make(name, heads_of), 5, T)


@pytest.mark.parametrize("name", ["gated deltanet", "kda", "gla", "deltaproduct, gated"])
def test_heads_with_other_values_than_keys(name: str) -> None:
    check_near(make(name, 16, **WIDTHS), 3, 50)


def check_near(cell: Cell, B: int, T: int) -> None:
    assert triton.why_not(cell) is None
    double = copy.deepcopy(cell).double()
    state = start(double, B)
    near = tuple(s.to(torch.complex64 if s.is_complex() else torch.float32) for s in state)
    x = draw(B, T, 3).cuda()
    exact = results(reference.run, double, x, state)
    own, loop = (results(run, cell, x.float(), near) for run in (triton.run, reference.run))
    for tolerance, *parts in zip((1e-5, 1e-4), own, loop, exact, strict=True):
        for found, plain, wanted in zip(*parts, strict=True):
            allowed = max(tolerance * (1 + float(wanted.abs().max())), 4 * float((plain - wanted).abs().max()))
            assert float((found - wanted).abs().max()) <= allowed


@pytest.mark.parametrize("name", CASES)
def test_the_kernels_pass_their_trial_and_are_taken(name: str) -> None:
    cell = make(name, 32)
    assert choice.failure("triton", cell) is None
    assert choose(cell)[0] in ("triton", "graph")


@pytest.mark.parametrize("cls", [LRU, MinGRU, RWKV7])
def test_nothing_waits_for_the_gpu_and_bits_are_the_same(cls: type) -> None:
    cell, x = untouched_cell(cls, hidden_size=64).float().cuda(), draw(20, 40, 3).float().cuda()
    state, found = start(cell, 20), []
    for mode in ("default", "error", "error"):
        try:
            torch.cuda.set_sync_debug_mode(mode)
            h, _ = triton.run(cell, x, state)
            found.append([h, *torch.autograd.grad(h.abs().sum(), [cell.U])])
        finally:
            torch.cuda.set_sync_debug_mode("default")
    assert all(torch.equal(a, b) for a, b in zip(*found[1:], strict=True))
