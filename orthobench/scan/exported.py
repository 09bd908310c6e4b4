"""The recurrence as one operator, for torch.export and ONNX: its number of steps is not fixed."""

from torch import Tensor

from orthobench.cells.base import Cell, State
from orthobench.scan import reference


def run(cell: Cell, x: Tensor, state: State) -> tuple[Tensor, State]:
    """See `reference.run`, whose numbers these are; the loop becomes torch's `scan`, and ONNX's operator Scan."""
    from torch._higher_order_ops.scan import scan

    W = cell.matrices()

    def step(before: State, p_t: Tensor) -> tuple[State, Tensor]:
        output, after = cell.advance(p_t, before, W)
        # a state keeps its layout from step to step, and an output that is also a state may not share its memory
        return tuple(s.contiguous() for s in after), output.clone()

    final, h_TBN = scan(step, tuple(s.clone() for s in state), reference.projected(cell, x, W))
    return h_TBN.transpose(0, 1), tuple(final)
