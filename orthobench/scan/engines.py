"""The list of engines, one record each; torch is imported only when an engine is used.

An engine is a module with three functions: `why_not(cell)`, `advantage(cell, device, sequences)` and
`run(cell, x, state)`; a fourth, `values_per_step(cell)`, takes the place of the cell's where the engine keeps less than
the plain loop. A table AT_STEPS, by class of cell, has functions `run(cell, x, state, steps)` for cells whose outputs
cost more than their steps: they compute those of some steps alone. To add an engine, write such a module and add one
line here: the values of `engine=`, the automatic choice, `orthobench bench`, ensembles and the estimate of memory all
read this list.
"""

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from orthobench.scan.steps import at_steps

if TYPE_CHECKING:
    from torch import Tensor

    from orthobench.cells.base import Cell, State


@dataclass(frozen=True)
class Engine:
    """Way to run a cell over a sequence.

    Attributes:
        name: the word after `engine=`.
        module: where its three functions are.
        rank: `auto` asks the engines in this order, and takes the first with an advantage.
        held: how many numbers are in memory at the peak of the backward pass, gradients included, per sequence, step
            and unit of `Cell.values_per_step`. Those of the CPU engines were measured; those of the GPU engines were
            counted from the code: `graph` copies inputs and outputs, `triton` and `cuda` keep projections and states.
        mapped: whether torch.func.vmap can map its loop directly; any other engine runs one member after the other.
    """

    name: str
    module: str
    rank: int
    held: float
    mapped: bool = False

    def why_not(self, cell: "Cell") -> str | None:
        """Why this engine cannot run the cell where and as it is; None when it can."""
        return self._functions.why_not(cell)

    def advantage(self, cell: "Cell", device: str, sequences: int) -> str | None:
        """Why `auto` takes this engine, unless one before it does; else None.

        Args:
            cell: the cell.
            device: the type of device, cpu or cuda.
            sequences: about how many sequences are computed at once, those of all members of an ensemble.
        """
        return self._functions.advantage(cell, device, sequences)

    def peak(self, cell: "Cell") -> float:
        """Numbers in memory at the peak of the backward pass, gradients included, per sequence and step."""
        own = getattr(self._functions, "values_per_step", None)
        return self.held * (cell.values_per_step if own is None else own(cell))

    def run(self, cell: "Cell", x: "Tensor", state: "State", steps: "Tensor | None" = None) -> "tuple[Tensor, State]":
        """Run the cell over x from `state`, with the outputs at `steps` (B, K) alone if given; see `reference.run`."""
        special = None if steps is None else self._at_steps(cell)
        if special is not None:
            return special(cell, x, state, steps)
        h, end = self._functions.run(cell, x, state)
        return at_steps(h, steps), end

    def _at_steps(self, cell: "Cell") -> Any:
        from orthobench.scan.families import lookup  # here, as it imports torch

        return lookup(cell, getattr(self._functions, "AT_STEPS", {}))

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
        Engine("cuda", "orthobench.scan.cuda.engine", rank=3, held=5.0, mapped=True),
    )
}


def words() -> tuple[str, ...]:
    """The allowed values of `engine=`."""
    return "auto", *ENGINES
