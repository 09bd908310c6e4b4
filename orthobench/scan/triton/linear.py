"""Cells that are linear in their state: the loops of `fused`, with kernels for the recurrence."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from orthobench.cells.base import Cell, State
from orthobench.scan.fused import linear
from orthobench.scan.triton.diagonal import diagonal_scan


def run(family: str, cell: Cell, x: Tensor, state: State) -> tuple[Tensor, State]:
    """Run a cell of a family in `engine.LINEAR` over x from `state`; see `reference.run`."""
    return RUNS[family](cell, x, state)


def _diagonal(cell: Any, x: Tensor, state: State) -> tuple[Tensor, State]:
    return linear.run(cell, x, state, diagonal_scan)


RUNS: dict[str, Callable[[Any, Tensor, State], tuple[Tensor, State]]] = {"diagonal": _diagonal}
