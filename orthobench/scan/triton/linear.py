"""Cells that are linear in their state: the code of `fused` for all steps at once, with kernels for the recurrence."""

from functools import partial

from torch import Tensor

from orthobench.cells.base import Cell, State
from orthobench.cells.deltaproduct import DeltaProduct
from orthobench.cells.diagonal_linear import DiagonalLinear
from orthobench.cells.mlstm import MLSTM
from orthobench.cells.outer import Outer
from orthobench.scan.fused import linear, matrix_cells, outer
from orthobench.scan.fused.engine import RunCell
from orthobench.scan.triton.diagonal import diagonal_scan
from orthobench.scan.triton.matrix_state import matrix_scan, outer_scan

RUNS: dict[type, RunCell] = {
    DiagonalLinear: partial(linear.run, scan=diagonal_scan),
    DeltaProduct: partial(matrix_cells.delta_product, scan=matrix_scan, whole=True),
    MLSTM: partial(matrix_cells.mlstm, scan=matrix_scan, whole=True),
    Outer: partial(outer.run, scan=outer_scan, whole=True),
}


def run(cell: Cell, x: Tensor, state: State) -> tuple[Tensor, State]:
    """Run a cell of a family in `choice.LINEAR` over x from `state`; see `reference.run`."""
    return next(own for cls, own in RUNS.items() if isinstance(cell, cls))(cell, x, state)
