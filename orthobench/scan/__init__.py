"""Running a cell over a sequence: all engines compute the same numbers; `engines.py` lists them.

`reference` is the plain autograd loop and the oracle of the tests; `fused` has a hand-written backward pass, or does
many steps at once; `native` is the same in C. On a GPU, `graph` launches what `fused` does as one CUDA graph, and
`triton` and `cuda` run one kernel forward and one backward.
"""

from functools import partial
from typing import TYPE_CHECKING

from orthobench.errors import ConfigError
from orthobench.scan.engines import ENGINES, Engine, words
from orthobench.scan.steps import at_steps

if TYPE_CHECKING:
    from torch import Tensor

    from orthobench.cells.base import Cell, State

SEQUENCES = 50  # where a caller does not know how many there are

__all__ = ["ENGINES", "Engine", "choose", "recurrence", "words"]


def choose(
    cell: "Cell", engine: str = "auto", device: str | None = None, sequences: int | None = None
) -> tuple[str, str]:
    """The engine that will run `cell`, and the reason.

    Args:
        cell: the cell.
        engine: auto, or the name of an engine.
        device: the type of device that `auto` chooses for, cpu or cuda; None for the device of the parameters.
        sequences: about how many sequences are computed at once, those of all members of an ensemble; None for 50.

    Raises:
        ConfigError: an engine that cannot run this cell was asked for by name.
    """
    if engine == "auto":
        ranked = sorted(ENGINES.values(), key=lambda known: known.rank)
        where, many = device or cell.U.device.type, sequences or SEQUENCES
        reasons = ((known.name, known.advantage(cell, where, many)) for known in ranked)
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


def recurrence(
    cell: "Cell", x: "Tensor", h0: "State | None" = None, engine: str = "auto", steps: "Tensor | None" = None
) -> "tuple[Tensor, State]":
    """Run `cell` over a sequence.

    Args:
        cell: the cell; its recurrent matrices are computed once.
        x: inputs (B, T, I), or tokens (B, T).
        h0: initial state, a tuple of tensors (B, N), or (1, N) for the whole batch; the cell's own when None.
        engine: auto, or the name of an engine, see `engines.py`. Empty batches and sequences always run on `reference`;
            `auto` also takes `reference` under the derivatives of torch.func and in forward mode. While anything traces
            or exports, whatever the engine, it is `reference`, whose loop torch.export may make one operator.
        steps: the steps (B, K) whose outputs are wanted, from 0, different ones in a sequence; all T when None. Engines
            compute those alone where an output costs much (AT_STEPS), unless hooks or a `forward` of the cell's own
            are to see all.

    Returns:
        All hidden states (B, T, N), or the outputs (B, T, F) of a cell whose steps return them; and the final state.

    Raises:
        ConfigError: the engine cannot run the cell, or not under the transforms of torch.func that are active.
        ValueError: x or h0 has another shape, type or device than the cell needs.
    """
    if steps is not None and _shows_outputs(cell):
        h, end = cell(x, h0, run=partial(run_whole, engine=engine))
        return at_steps(h, steps), end
    return cell(x, h0, run=partial(run_whole, engine=engine, steps=steps))


def _shows_outputs(cell: "Cell") -> bool:
    """Return True if anything but the caller gets a cell's outputs: hooks, or a `forward` of its own."""
    from orthobench.cells.base import Cell as Base  # here, as they import torch
    from orthobench.parametrizations.hooks import hooked

    return hooked(cell) or getattr(cell.forward, "__func__", None) is not Base.forward


def run_whole(
    cell: "Cell", x: "Tensor", h0: "State | None", engine: str, steps: "Tensor | None" = None
) -> "tuple[Tensor, State]":
    """Run what `recurrence` runs, without calling the cell: its hooks have acted."""
    import torch  # here, because listing the engines' names needs no torch

    from orthobench.parametrizations.traced import differentiating, traced
    from orthobench.scan import exported, inputs, members

    state = inputs.checked(cell, x, h0)
    if torch.compiler.is_exporting():
        h, end = exported.run(cell, x, state)
        return at_steps(h, steps), end
    if traced(x, cell.U, *state):
        return ENGINES["reference"].run(cell, x, state, steps)
    name, _ = choose(cell, engine, sequences=len(x))
    if 0 in x.shape[:2]:
        name = "reference"
    if name != "reference" and differentiating():
        if engine != "auto":
            raise ConfigError(
                f"engine={engine} has no forward mode and no torch.func.grad, jvp or hessian: use engine=reference."
            )
        name = "reference"
    return members.run(ENGINES[name], cell, x, state, steps)
