"""The engines, each one record; torch is imported only when one of them is used.

An engine is a module with three functions: `why_not(cell)`, `advantage(cell, device)` and `run(cell, x, state)`. A new
one is such a module and one line here: the words of `engine=`, the automatic choice, `orthobench bench`, ensembles and
the estimate of memory read this list.
"""

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

    from orthobench.cells.base import Cell, State


@dataclass(frozen=True)
class Engine:
    """One way to drive a cell through time.

    Attributes:
        name: the word after `engine=`.
        module: where its three functions are.
        rank: `auto` asks the engines in this order, and takes the first with an advantage.
        held: numbers that are in memory at the peak of the reverse, per sequence, step and `Cell.values_per_step`,
            gradients included. Measured on a CPU; a GPU's are counted: `graph` copies in and out, `triton` keeps
            projections beside states.
        mapped: whether torch.func.vmap maps its loop as it is; any other runs one member after the other.
    """

    name: str
    module: str
    rank: int
    held: float
    mapped: bool = False

    def why_not(self, cell: "Cell") -> str | None:
        """Why this engine cannot run the cell where and as it is; null when it can."""
        return self._functions.why_not(cell)

    def advantage(self, cell: "Cell", device: str) -> str | None:
        """Why `auto` takes this engine, unless one before it does, on a type of device (cpu, cuda); else null."""
        return self._functions.advantage(cell, device)

    def run(self, cell: "Cell", x: "Tensor", state: "State") -> "tuple[Tensor, State]":
        """Run the cell over x from `state`; see `reference.run`."""
        return self._functions.run(cell, x, state)

    @property
    def _functions(self) -> Any:
        return import_module(self.module)


ENGINES: dict[str, Engine] = {
    engine.name: engine
    for engine in (
        Engine("reference", "orthobench.scan.reference", rank=5, held=7.0, mapped=True),
        Engine("fused", "orthobench.scan.fused.engine", rank=2, held=4.0),
        Engine("native", "orthobench.scan.native.engine", rank=1, held=4.0),
        Engine("graph", "orthobench.scan.graph.engine", rank=4, held=8.0),
        Engine("triton", "orthobench.scan.triton.engine", rank=3, held=5.0, mapped=True),
    )
}


def words() -> tuple[str, ...]:
    """What `engine=` may say."""
    return "auto", *ENGINES
