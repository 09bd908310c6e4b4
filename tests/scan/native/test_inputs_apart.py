"""Inputs whose steps or sequences share memory: the same numbers and gradients as those of a copy."""

from typing import Any

import pytest
import torch
from torch import Tensor

from orthobench.cells.base import Cell
from orthobench.scan import recurrence
from orthobench.scan.native.library import missing
from tests.making import draw
from tests.scan.native.cases import CASES, make

pytestmark = pytest.mark.skipif(missing(torch.float64) is not None, reason="no C compiler here")
VIEWS = {
    "one vector at every step": lambda: draw(2, 1, 3).expand(2, 6, 3),
    "one vector everywhere": lambda: draw(1, 1, 3).expand(2, 6, 3),
    "one sequence": lambda: draw(1, 6, 3).expand(2, 6, 3),
    "windows": lambda: draw(30).as_strided((2, 6, 3), (1, 2, 1)),
}


def results(cell: Cell, x: Tensor, wanted: bool) -> list[Tensor]:
    """Outputs, and gradients by every parameter and, if `wanted`, by the inputs."""
    x = x.detach().requires_grad_(wanted)
    y, _ = recurrence(cell, x, cell.initial_state(len(x)), engine="native")
    by = [*(p for p in cell.parameters() if p.requires_grad), *([x] if wanted else [])]
    found = torch.autograd.grad(y.abs().square().sum(), by, allow_unused=True)
    return [y.detach(), *(one for one in found if one is not None)]


@pytest.mark.parametrize("wanted", [False, True], ids=["", "gradient of the inputs"])
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize(("cls", "options"), CASES)
def test_steps_that_share_memory(cls: type, options: dict[str, Any], view: str, wanted: bool) -> None:
    cell, x = make(cls, **options), VIEWS[view]()
    for found, expected in zip(results(cell, x, wanted), results(cell, x.contiguous(), wanted), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)
