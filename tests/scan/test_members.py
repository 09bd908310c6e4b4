"""Engines without a rule of their own for members give each member what it would get alone, to the last bit."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from orthobench.cells.base import Cell
from orthobench.cells.elman import Elman
from orthobench.cells.gru import GRU
from orthobench.cells.lstm import LSTM
from orthobench.cells.scalar_gated import ScalarGated
from orthobench.scan import recurrence
from tests.making import draw, randomise, untouched_cell

ENGINES = [(Elman, "native"), (ScalarGated, "native"), (GRU, "native"), (Elman, "fused"), (LSTM, "fused")]


class Scan(nn.Module):
    def __init__(self, cell: Cell, engine: str) -> None:
        super().__init__()
        self.cell, self.engine = cell, engine

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h, final = recurrence(self.cell, x, engine=self.engine)
        return h, final[0]


@pytest.mark.parametrize(("cls", "engine"), ENGINES)
def test_members_get_what_they_would_get_alone(cls: Any, engine: str) -> None:
    scans = [Scan(randomise(untouched_cell(cls)), engine) for _ in range(3)]
    for i, scan in enumerate(scans):
        for p in scan.parameters():
            p.data.mul_(1 + i / 4)
    x, g = draw(3, 5, 7, 3), draw(3, 5, 7, 4, seed=16)
    leaves = {
        name: torch.stack([dict(scan.named_parameters())[name].detach() for scan in scans]).requires_grad_()
        for name, _ in scans[0].named_parameters()
    }
    h, last = vmap(lambda own, x: functional_call(scans[0], own, (x,)))(leaves, x)
    ((h * g).sum() + last.sum()).backward()
    for i, scan in enumerate(scans):
        alone, end = scan(x[i])
        ((alone * g[i]).sum() + end.sum()).backward()
        assert torch.equal(h[i], alone)
        assert torch.equal(last[i], end)
        for name, p in scan.named_parameters():
            assert p.grad is not None
            found = leaves[name].grad
            assert found is not None
            assert torch.equal(found[i], p.grad)
