"""The recurrence as one operator, for torch.export and ONNX: its number of steps is not fixed."""

from torch import Tensor

from orthobench.cells.base import Cell, State
from orthobench.errors import ConfigError
from orthobench.scan import reference


def run(cell: Cell, x: Tensor, state: State) -> tuple[Tensor, State]:
    """See `reference.run`, whose numbers these are; the loop becomes torch's `scan`, and ONNX's operator Scan.

    That operator takes no complex states: with those, the steps are written out one by one. A single step is no loop.

    Raises:
        ConfigError: the state is complex, and the number of steps is left open.
    """
    from torch._higher_order_ops.scan import scan

    if any(s.is_complex() for s in state):
        if not isinstance(x.shape[1], int):
            raise ConfigError(
                f"{type(cell).__name__} has a complex state, for which torch.export has no loop over a number of steps "
                "that is left open: give a fixed number of steps."
            )
        return reference.run(cell, x, state)
    if isinstance(x.shape[1], int) and x.shape[1] == 1:
        return reference.run(cell, x, state)
    W = cell.matrices()

    def step(before: State, p_t: Tensor) -> tuple[State, Tensor]:
        output, after = cell.advance(p_t, before, W)
        # a state keeps its layout from step to step, and an output that is also a state may not share its memory
        return tuple(s.contiguous() for s in after), output.clone()

    final, h_TBN = scan(step, tuple(s.clone() for s in state), reference.projected(cell, x, W))
    return h_TBN.transpose(0, 1), tuple(final)
