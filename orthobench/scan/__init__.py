"""Driving a cell through time: one engine per file, all with the same numbers; `engines.py` lists them.

`reference` is the plain autograd loop, the oracle; `fused` has the reverse written by hand; `native` is the same in C.
On a GPU, `graph` launches the fused loop as one CUDA graph, and `triton` is one kernel each way.
"""

from typing import TYPE_CHECKING

from orthobench.errors import ConfigError
from orthobench.scan.engines import ENGINES, Engine, words

if TYPE_CHECKING:
    from torch import Tensor

    from orthobench.cells.base import Cell, State

__all__ = ["ENGINES", "Engine", "choose", "recurrence", "words"]


def choose(cell: "Cell", engine: str = "auto", device: str | None = None) -> tuple[str, str]:
    """The engine that will run `cell`, and the reason.

    Args:
        cell: the cell.
        engine: auto, or the name of one.
        device: the type of device that `auto` chooses for, cpu or cuda; the one where the parameters are when null.

    Raises:
        ConfigError: an engine that cannot run this cell was asked for by name.
    """
    if engine == "auto":
        ranked = sorted(ENGINES.values(), key=lambda known: known.rank)
        reasons = ((known.name, known.advantage(cell, device or cell.U.device.type)) for known in ranked)
        return next((name, reason) for name, reason in reasons if reason is not None)
    if engine not in ENGINES:
        raise ConfigError(f"engine={engine!r} is not available; allowed: {', '.join(words())}.")
    problem = ENGINES[engine].why_not(cell)
    if problem:
        raise ConfigError(
            f"engine={engine} cannot run {type(cell).__name__} with these settings: {problem}; "
            "use engine=auto or engine=reference."
        )
    return engine, "asked for"


def recurrence(cell: "Cell", x: "Tensor", h0: "State | None" = None, engine: str = "auto") -> "tuple[Tensor, State]":
    """Run `cell` over a sequence.

    Args:
        cell: the cell; its recurrent matrices are materialised once.
        x: inputs (B, T, I), or tokens (B, T).
        h0: initial state, tensors (B, N); the cell's own when null.
        engine: auto, or the name of one, see `engines.py`.

    Returns:
        All hidden states (B, T, N), and the final state.
    """
    from orthobench.scan import members  # with torch, which the words of `engine=` do without

    name, _ = choose(cell, engine)
    state = cell.initial_state(x.shape[0]) if h0 is None else h0
    return members.run(ENGINES[name], cell, x, state)
