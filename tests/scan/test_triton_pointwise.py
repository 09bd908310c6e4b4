"""The loop of small kernels that a GPU runs where no kernel has a cell's whole loop: one kernel for an activation."""

import importlib
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from orthobench.cells.elman import Elman
from orthobench.cells.scalar_gated import ScalarGated
from orthobench.scan.fused import engine as fused
from tests.making import draw
from tests.scan.native.cases import assert_equal
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
