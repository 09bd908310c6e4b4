"""Driving a cell through time: one engine per file, all with the same numbers.

`reference` is the plain autograd loop, the oracle; `fused` has the reverse written by hand; `native` is the same in C.
"""

from functools import lru_cache
from typing import Literal

from torch import Tensor

from orthobench.cells.base import Cell, State
from orthobench.errors import ConfigError
from orthobench.scan import fused, native, reference
from orthobench.terminal import complain

Engine = Literal["auto", "reference", "fused", "native"]
ENGINES = {"reference": reference, "fused": fused, "native": native}


def choose(cell: Cell, engine: str = "auto") -> tuple[str, str]:
    """The engine that will run `cell`, where its parameters are now, and the reason.

    Raises:
        ConfigError: an engine that cannot run this cell was asked for by name.
    """
    if engine == "auto":
        return _fastest(cell)
    if engine not in ENGINES:
        raise ConfigError(f"engine={engine!r} is not available; allowed: auto, {', '.join(ENGINES)}.")
    problem = None if engine == "reference" else ENGINES[engine].why_not(cell)
    if problem:
        raise ConfigError(
            f"engine={engine} cannot run {type(cell).__name__} with these settings: {problem}; "
            "use engine=auto or engine=reference."
        )
    return engine, "asked for"


def _fastest(cell: Cell) -> tuple[str, str]:
    """On CPUs the compiled loops win at every size, precision and batch that `orthobench bench` measures."""
    problem = native.why_not(cell)
    if problem is None and native.worthwhile(cell):
        return "native", "compiled loops are the fastest on a CPU"
    if problem is not None and native.lacks_compiler(cell):
        _warn(problem)
    if fused.why_not(cell) is None:
        return "fused", fused.reason(cell)
    return "reference", "the autograd loop: no faster engine knows this cell"


@lru_cache
def _warn(problem: str) -> None:
    complain(f"orthobench: engine=native is left out, the slower engine=fused is taken: {problem}.")


def recurrence(cell: Cell, x: Tensor, h0: State | None = None, engine: str = "auto") -> tuple[Tensor, State]:
    """Run `cell` over a sequence.

    Args:
        cell: the cell; its recurrent matrices are materialised once.
        x: inputs (B, T, I), or tokens (B, T).
        h0: initial state, tensors (B, N); the cell's own when null.
        engine: auto, reference, fused or native.

    Returns:
        All hidden states (B, T, N), and the final state.
    """
    name, _ = choose(cell, engine)
    state = cell.initial_state(x.shape[0]) if h0 is None else h0
    return ENGINES[name].run(cell, x, state)
