"""The whole sequence in few Triton kernels, where there are matrices in registers, a sequence for each program.

Cells that are linear in their state have a scan, with the code of `fused` around it. The files of `fused` and `native`
with the same names have the equations. Only the files with the kernels import the package triton, which is optional.
"""

from functools import partial
from importlib import import_module
from typing import Any, cast

from torch import Tensor

from orthobench.cells.base import Cell, State
from orthobench.cells.heads import Headed
from orthobench.scan.families import lookup
from orthobench.scan.fused import matrix_cells
from orthobench.scan.gpu import choice
from orthobench.scan.gpu.triton_here import missing

LARGEST = {"elman": 256}  # hidden units; larger matrices would be read from the cache at every step
LARGEST_KEYS = 64  # of a head with a matrix state, whose kernels would spill registers beyond
LARGEST_OF_SEVERAL = 128

advantage = partial(choice.advantage, "triton")


def why_not(cell: Cell) -> str | None:
    """Why this engine cannot run the cell; None when it can."""
    family = lookup(cell, choice.FAMILIES)
    if family is None:
        return f"it has no kernel for {type(cell).__name__}"
    if family == "matrix" and (keys := cast(Headed, cell).key_width) > LARGEST_KEYS:
        return f"its kernels for {type(cell).__name__} are for keys of up to {LARGEST_KEYS} numbers, not {keys}"
    if getattr(cell, "orthogonal", False):
        return "its kernels read the matrix of a head as it is"
    largest = LARGEST.get(family, LARGEST_OF_SEVERAL)
    if cell.hidden_size > largest and family not in choice.LINEAR:
        return f"its kernels for {type(cell).__name__} are for up to {largest} hidden units, not {cell.hidden_size}"
    if getattr(cell, "stepwise", False):
        return "its kernels multiply by dense matrices, and this one is applied factor by factor"
    return missing(cell.U.device, cell.U.dtype)


def values_per_step(cell: Any) -> int:
    """Numbers from which the memory of a step is estimated, as `Cell.values_per_step`; a matrix state is kept for few
    steps.

    Beside it two matrices over the writes of a chunk are kept.
    """
    if lookup(cell, choice.FAMILIES) != "matrix":
        return cell.values_per_step
    return matrix_cells.values_per_step(cell) + 2 * cell.heads * getattr(cell, "products", 1) * matrix_cells.WINDOW


def run(cell: Cell, x: Tensor, state: State) -> tuple[Tensor, State]:
    """Run `cell` over x from `state`; see `reference.run`."""
    if lookup(cell, choice.FAMILIES) in choice.LINEAR:
        return import_module("orthobench.scan.triton.linear").run(cell, x, state)
    return choice.run_by(import_module("orthobench.scan.triton.launch").launch, cell, x, state)
