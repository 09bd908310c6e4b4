"""Driving a cell through time: one engine per file, all with the same numbers.

`reference` is the plain autograd loop, the oracle; `fused` has the reverse written by hand; `native` is the same in C.
On a GPU, `graph` launches the fused loop as one CUDA graph, and `triton` is one kernel each way.
"""

from functools import lru_cache
from typing import Literal

from torch import Tensor

from orthobench.cells.base import Cell, State
from orthobench.errors import ConfigError
from orthobench.scan import members, reference
from orthobench.scan.families import lookup
from orthobench.scan.fused import engine as fused
from orthobench.scan.fused import torch_kernels
from orthobench.scan.graph import engine as graph
from orthobench.scan.native import engine as native
from orthobench.scan.triton import engine as triton_engine
from orthobench.terminal import complain

Engine = Literal["auto", "reference", "fused", "native", "graph", "triton"]
ENGINES = {"reference": reference, "fused": fused, "native": native, "graph": graph, "triton": triton_engine}


def choose(cell: Cell, engine: str = "auto") -> tuple[str, str]:
    """The engine that will run `cell`, where its parameters are now, and the reason.

    Raises:
        ConfigError: an engine that cannot run this cell was asked for by name.
    """
    if engine == "auto":
        return _fastest_on_gpu(cell) if _on_gpu(cell) else _fastest(cell)
    if engine not in ENGINES:
        raise ConfigError(f"engine={engine!r} is not available; allowed: auto, {', '.join(ENGINES)}.")
    problem = None if engine == "reference" else ENGINES[engine].why_not(cell)
    if problem:
        raise ConfigError(
            f"engine={engine} cannot run {type(cell).__name__} with these settings: {problem}; "
            "use engine=auto or engine=reference."
        )
    return engine, "asked for"


def _on_gpu(cell: Cell) -> bool:
    return cell.U.is_cuda


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


def _fastest_on_gpu(cell: Cell) -> tuple[str, str]:
    """By what is published of such kernels, not measured here: torch's own, one kernel each way, graphs, the loop.

    A cell of one's own may do in its steps what no graph can hold; it is captured only where that is asked for.
    """
    if torch_kernels.supports(cell):
        return "fused", fused.reason(cell)
    problem = triton_engine.why_not(cell) or triton_engine.failure(cell)
    if problem is None:
        return "triton", "one kernel each way, with the recurrent matrices on the chip"
    if lookup(cell, fused.FAMILIES) is not None or type(cell).__module__.startswith("orthobench.cells."):
        return "graph", f"the loop as one CUDA graph each way; engine=triton is left out: {problem}"
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
        engine: auto, reference, fused, native, graph or triton.

    Returns:
        All hidden states (B, T, N), and the final state.
    """
    name, _ = choose(cell, engine)
    state = cell.initial_state(x.shape[0]) if h0 is None else h0
    return members.run(name, ENGINES[name].run, cell, x, state)
