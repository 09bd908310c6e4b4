"""Cells that a hand-written engine may run: those whose equations are exactly the ones it was written for.

A subclass that redefines `step`, or a method that it calls, is another cell, and an engine that knows only its base
would give it wrong numbers. Such a cell, like any new one, is left to `reference`.
"""

from collections.abc import Iterable
from typing import TypeVar

from orthobench.cells.base import Cell

Value = TypeVar("Value")

ASKED_OF_THE_CELL = {"matrices", "project", "initial_state"}  # an engine calls these, so a subclass may redefine them
NOT_EQUATIONS = {"torch_kernel", "step_gain", "features", "remark", "_abc_impl"}


def lookup(cell: Cell, known: dict[type, Value], asked: Iterable[str] = ASKED_OF_THE_CELL) -> Value | None:
    """The entry of `known` for the cell's class, or for the base whose equations the class leaves as they are."""
    if getattr(cell, "own_equations", False):
        return None
    harmless = NOT_EQUATIONS | set(asked)
    redefined: set[str] = set()
    for cls in type(cell).__mro__:
        if cls in known:
            return None if any(hasattr(cls, name) for name in redefined) else known[cls]
        redefined |= {name for name in vars(cls) if not name.startswith("__") and name not in harmless}
    return None
