"""Driving a cell through time: one engine per file, all with the same numbers.

`reference` is the plain autograd loop, the oracle; `fused` runs the whole sequence in one call.
"""

from typing import Literal

from torch import Tensor

from orthobench.cells.base import Cell, State
from orthobench.errors import ConfigError
from orthobench.scan import fused, reference

Engine = Literal["auto", "reference", "fused"]


def choose(cell: Cell, engine: str = "auto") -> tuple[str, str]:
    """The engine that will run `cell` and the reason.

    Raises:
        ConfigError: an engine that cannot run this cell was asked for by name.
    """
    supported = fused.supports(cell)
    if engine == "reference":
        return "reference", "asked for"
    if engine == "fused":
        if supported:
            return "fused", "asked for"
        name = type(cell).__name__
        raise ConfigError(f"engine=fused cannot run {name} with these settings; use engine=auto or engine=reference.")
    if engine != "auto":
        raise ConfigError(f"engine={engine!r} is not available; allowed: auto, reference, fused.")
    if supported:
        return "fused", fused.reason(cell)
    return "reference", "the autograd loop: no faster kernel is there for this cell"


def recurrence(cell: Cell, x: Tensor, h0: State | None = None, engine: str = "auto") -> tuple[Tensor, State]:
    """Run `cell` over a sequence.

    Args:
        cell: the cell; its recurrent matrices are materialised once.
        x: inputs (B, T, I), or tokens (B, T).
        h0: initial state, tensors (B, N); the cell's own when null.
        engine: auto, reference or fused.

    Returns:
        All hidden states (B, T, N), and the final state.
    """
    name, _ = choose(cell, engine)
    state = cell.initial_state(x.shape[0]) if h0 is None else h0
    run = fused.run if name == "fused" else reference.run
    return run(cell, x, state)
