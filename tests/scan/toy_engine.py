"""An engine: the plain loop, whose states are seen from the last to the first."""

from torch import Tensor

from orthobench.cells.base import Cell, State
from orthobench.cells.gru import GRU
from orthobench.scan import reference


def why_not(cell: Cell) -> str | None:
    return None if isinstance(cell, GRU) else "it is for gated units"


def advantage(cell: Cell, device: str, sequences: int) -> str | None:
    return "it is a toy" if why_not(cell) is None else None


def run(cell: Cell, x: Tensor, state: State) -> tuple[Tensor, State]:
    h_BTN, final = reference.run(cell, x, state)
    return h_BTN.flip(1), final
