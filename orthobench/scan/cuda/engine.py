"""The whole sequence in one CUDA kernel forward and one backward: matrices in registers, shared out over a cluster.

The kernels are the files *.cuh; `layout.py` shares the work out. There is no kernel for complex states.
"""

from functools import partial

import torch

from orthobench.cells.base import Cell
from orthobench.scan.cuda import layout, program
from orthobench.scan.cuda.launch import has_clusters, launch
from orthobench.scan.families import lookup
from orthobench.scan.gpu import choice, costs
from orthobench.scan.native.compiler import CompileError

CAPABILITY = (7, 0)

advantage = partial(choice.advantage, "cuda")
run = partial(choice.run_by, launch)


def why_not(cell: Cell) -> str | None:
    """Why this engine cannot run the cell; None when it can."""
    family = lookup(cell, choice.FAMILIES)
    if family not in costs.MATRICES:
        return f"it has no kernel for {type(cell).__name__}"
    if getattr(cell, "stepwise", False):
        return "its kernels multiply by dense matrices, and this one is applied factor by factor"
    problem = missing(cell.U.device, cell.U.dtype)
    if (
        problem is None
        and layout.best(cell.hidden_size, matrices(cell, family), 1, has_clusters(cell.U.device)) is None
    ):
        problem = f"the matrices of {cell.hidden_size} hidden units do not fit into the registers of a cluster"
    return problem


def matrices(cell: Cell, family: str) -> int:
    """The number of recurrent matrices of a cell."""
    return costs.MATRICES[family] - (getattr(cell, "reset", None) == "none")


def missing(device: torch.device, dtype: torch.dtype) -> str | None:
    """Why this engine cannot run on a device in a dtype; None when it can."""
    if device.type != "cuda" or torch.version.hip:
        return "it is for CUDA devices"
    if torch.cuda.get_device_capability(device) < CAPABILITY:
        return "it needs a device of compute capability 7.0"
    if dtype != torch.float32:
        return f"it has no kernel for {dtype}"
    try:
        program.nvrtc()
    except CompileError as error:
        return str(error)
    return None
