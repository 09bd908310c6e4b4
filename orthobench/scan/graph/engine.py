"""The fused loop, captured in CUDA graphs: for any cell and size, one launch forward and one backward."""

from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from orthobench.cells.base import Cell, Matrices, State
from orthobench.parametrizations.hooks import refresh
from orthobench.scan import reference
from orthobench.scan.families import lookup
from orthobench.scan.fused import engine as fused
from orthobench.scan.graph import capture
from orthobench.scan.graph.capture import Replay, Shelf

SHAPES = 8  # how many shapes of each cell are kept captured
SHELVES: WeakKeyDictionary[Cell, Shelf] = WeakKeyDictionary()


def why_not(cell: Cell) -> str | None:
    """Why this engine cannot run the cell; None when it can."""
    return None if cell.U.is_cuda else "it is for CUDA devices"


def advantage(cell: Cell, device: str, sequences: int) -> str | None:
    """See `Engine.advantage`.

    A user's own cell may do things in its steps that a graph cannot capture, so it needs an explicit engine=graph.
    """
    known = lookup(cell, fused.FAMILIES) is not None or type(cell).__module__.startswith("orthobench.cells.")
    if device != "cuda" or not known:
        return None
    return "the loop as one CUDA graph each way: no kernel for the whole sequence is faster, or none can run it"


def values_per_step(cell: Cell) -> int:
    """Numbers from which the memory of a step is estimated, as `Cell.values_per_step`: those of the captured loop."""
    return cell.values_per_step if lookup(cell, fused.FAMILIES) is None else fused.values_per_step(cell)


def run(cell: Cell, x: Tensor, state: State) -> tuple[Tensor, State]:
    """Run `cell` over x from `state`; see `reference.run`. Inside another capture the loop becomes part of it."""
    steps = lookup(cell, fused.FAMILIES) or reference.run
    if capture.under_way():
        return steps(cell, x, state)
    W, cell = cell.matrices(), vars(cell).get("original", cell)
    own = dict(cell.named_parameters())  # all, though most cells use U in the projection alone: a step may, too
    arguments = (reference.projected(cell, x, W), *state, *W, *own.values())
    loop = _Loop(cell, steps)
    names, ends = [f"cell.{name}" for name in own], (1 + len(state), 1 + len(state) + len(W))

    def function(*given: Tensor) -> tuple[Tensor, ...]:
        parameters = dict(zip(names, given[ends[1] :], strict=True))
        with torch.autocast(given[0].device.type, enabled=False):
            inputs = given[0], given[1 : ends[0]], given[ends[0] : ends[1]]
            return torch.func.functional_call(loop, parameters, inputs)

    lease = SHELVES.setdefault(cell, Shelf("a cell", SHAPES)).lease(function, arguments)
    if lease is None:
        return (fused if fused.why_not(cell) is None else reference).run(cell, x, state)
    h_BTN, *final = Replay.apply(lease, len(arguments), *arguments)
    return h_BTN, tuple(final)


class _Loop(nn.Module):
    """An engine's loop over a cell as a function of projections, state, matrices and the cell's parameters."""

    def __init__(self, cell: Cell, run: fused.RunCell) -> None:
        super().__init__()
        self.cell, self.run = cell, run

    def forward(self, p_TBM: Tensor, state: State, W: Matrices) -> tuple[Tensor, ...]:
        refresh(self.cell)
        h_BTN, final = self.run(_Given(self.cell, p_TBM, W), p_TBM, state)  # type: ignore[arg-type]
        return h_BTN, *final


class _Given:
    """A cell whose projection and matrices have been computed already."""

    def __init__(self, cell: Cell, p_TBM: Tensor, W: Matrices) -> None:
        self._cell, self._p_TBM, self._W = cell, p_TBM, W

    def project(self, x: Tensor) -> Tensor:
        return self._p_TBM

    def matrices(self) -> Matrices:
        return self._W

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cell, name)
