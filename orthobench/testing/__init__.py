"""Checks of a cell or a task of one's own, the ones that those of this package pass: see docs/how-to."""

from orthobench.tasks.contract import check_task
from orthobench.testing.cell import CellCheck, check_cell, outcomes

__all__ = ["CellCheck", "check_cell", "check_task", "outcomes"]
