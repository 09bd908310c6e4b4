"""Cells that are linear in their state, by the compiled diagonal scan; the rest is done for all steps at once."""

from typing import Any

import torch
from torch import Tensor

from orthobench.cells.base import State
from orthobench.scan.native.diagonal import diagonal_scan
from orthobench.scan.reference import projected


def run(cell: Any, x: Tensor, state: State) -> tuple[Tensor, State]:
    """Run a `DiagonalLinear` cell over x from `state`; see `reference.run`."""
    W = cell.matrices()
    p_TBM = projected(cell, x, W)
    with torch.autocast(x.device.type, enabled=False):
        h_TBN = diagonal_scan(*cell.coefficients(p_TBM, W), *state)
        seen = cell.read(h_TBN, p_TBM, W) if cell.returns_output else h_TBN
    return seen.transpose(0, 1), (h_TBN[-1].clone(),)
