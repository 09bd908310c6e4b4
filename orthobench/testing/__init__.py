"""Checks of a cell of one's own, the ones that the cells of this package pass; see docs/tutorials/your-own-cell.md."""

from orthobench.testing.cell import CellCheck, check_cell, outcomes

__all__ = ["CellCheck", "check_cell", "outcomes"]
