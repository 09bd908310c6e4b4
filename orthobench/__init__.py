"""orthobench: which recurrent cell holds memory best, at what cost, beside the published number."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor

    from orthobench.cells.base import Cell, State
    from orthobench.run.run import Run

__version__ = "0.1.0"


def build(*overrides: str) -> "Run":
    """Build one run from the words of the command line.

        exp = orthobench.build("model=scornn", "task=copying", "T=200", "seed=1")

    Raises:
        orthobench.errors.ConfigError: an unknown key, a wrong type or a value out of range.
    """
    from orthobench.run.run import Run

    return Run.of(overrides)


def recurrence(cell: "Cell", x: "Tensor", h0: "State | None" = None, engine: str = "auto") -> "tuple[Tensor, State]":
    """Run a cell over a sequence: hidden states (B, T, N) and the final state. See `orthobench.scan.recurrence`."""
    from orthobench.scan import recurrence as run

    return run(cell, x, h0, engine)


def records(root: "str | Any" = "runs") -> "pd.DataFrame":
    """One row per run under `root`; nested keys are joined by dots, as in `metrics.best_val.test/loss`."""
    from orthobench.recording.store import frame

    return frame(root)
