"""Long sequences in segments of steps: what training keeps in memory is then one segment's, or the states alone.

The network goes over one segment after the other, each from the state that the one before left, and reads it out at
once. So gradients of hidden states, projections and outputs of layers are never there for more than one segment. With
`checkpoint=states` the states that the reverse needs are kept; with `auto` or a number of steps each segment keeps the
state before it alone, and is computed again in the reverse (Chen et al. 2016, sublinear memory cost).
The numbers are the same to rounding: a sum over steps has another order.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import isqrt
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from orthobench.cells.base import Matrices, State
from orthobench.scan.steps import at_steps

STATES = "states"
ROOTS = 4  # steps of a segment, in roots of all steps: shorter ones need less memory, and each call costs time
Checkpoint = str | int | None
Part = Callable[[Tensor, list[State] | None], tuple[Tensor, list[State]]]


def length_of(asked: Checkpoint, T: int) -> int:
    """Steps of a segment: the number that is asked for, else four times the root of all steps, rounded up."""
    return asked if isinstance(asked, int) else ROOTS * (isqrt(max(T - 1, 0)) + 1)


def over_steps(
    network: Any, x: Tensor, state: list[State] | None, taps: dict[int, Any] | None, steps: Tensor | None = None
) -> Any:
    """Outputs and final states of a recurrent network, whose `whole` goes over all steps at once: so, or in segments.

    Args:
        network: the network; its `checkpoint` says which.
        x: inputs of shape (B, T, I), or tokens (B, T).
        state: the states before the first step; the cells' own when None.
        taps: steps whose hidden states are wanted; then there are no segments.
        steps: the steps whose outputs are wanted; see `Network.forward`.

    Raises:
        ValueError: the state is that of another number of layers.
    """
    if state is not None and len(state) != len(network.cells):
        raise ValueError(f"the initial state is of {len(state)} layers, and there are {len(network.cells)}.")
    if network.checkpoint is None or taps is not None or not x.shape[1]:
        return network.whole(x, state, taps, steps)
    y, end = in_segments(network.whole, network.cells, x, state, network.checkpoint, network.readout == "all")
    return at_steps(y, steps), end


def in_segments(
    network: Part,
    cells: nn.ModuleList,
    x: Tensor,
    state: list[State] | None,
    asked: Checkpoint,
    every_step: bool,
) -> tuple[Tensor, list[State]]:
    """Run a network over a sequence in segments.

    Args:
        network: from inputs of shape (B, T, I), or tokens (B, T), and the states before them to outputs and states.
        cells: its recurrent layers, whose matrices are computed once.
        x: the inputs.
        state: the states before the first step; the cells' own when None.
        asked: `states`, `auto` or the steps of a segment.
        every_step: whether there is an output for every step, (B, T, O); otherwise it is the last segment's, (B, O).

    Returns:
        What the network returns for the whole sequence.
    """
    matrices = [cell.matrices() for cell in cells]  # type: ignore[operator]

    def run(part: Tensor, before: list[State] | None) -> tuple[Tensor, list[State]]:
        with with_matrices(cells, matrices):
            return network(part, before)

    again = asked != STATES and torch.is_grad_enabled()
    found = []
    for part in x.split(length_of(asked, x.shape[1]), 1):
        y, state = checkpoint(run, part, state, use_reentrant=False) if again else run(part, state)
        if not every_step:
            found.clear()
        found.append(y)
    assert state is not None
    return torch.cat(found, 1) if every_step else found[0], state


@contextmanager
def with_matrices(cells: nn.ModuleList, matrices: list[Matrices]) -> Iterator[None]:
    """Temporarily replace `cell.matrices()` by precomputed matrices."""
    pairs: list[tuple[Any, Matrices]] = list(zip(cells, matrices, strict=True))
    for cell, own in pairs:
        cell.matrices = lambda own=own: own
    try:
        yield
    finally:
        for cell, _ in pairs:
            del cell.matrices
