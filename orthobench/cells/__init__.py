"""Cells: one step of a recurrence each. One family per file; the file's name is the word in the configuration."""

from orthobench.cells.base import Cell, Matrices, State

__all__ = ["Cell", "Matrices", "State"]
