"""A network as a function of one step, for programs that read a sequence as it comes: input and states to output."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from orthobench.cells.base import State
from orthobench.errors import ConfigError
from orthobench.models.base import Network
from orthobench.models.frozen import frozen

Session = Callable[[dict[str, np.ndarray]], list[np.ndarray]]


class OneStep(nn.Module):
    """The network on sequences of one step.

    Args:
        model: a network from `frozen`.
    """

    def __init__(self, model: Network) -> None:
        super().__init__()
        self.model = model
        self.counts = [len(cell.initial_state(1)) for cell in model.cells]

    def initial(self, B: int) -> State:
        """The states before the first step, tensors (B, ...) of all layers, one after the other."""
        return tuple(s.contiguous() for cell in self.model.cells for s in cell.initial_state(B))

    def forward(self, x: Tensor, states: State) -> tuple[Tensor, ...]:
        """The output (B, O) of a step and the states after it.

        Args:
            x: inputs (B, I), or tokens (B,).
            states: as of `initial`.
        """
        waiting = iter(states)
        layers = [tuple(next(waiting) for _ in range(count)) for count in self.counts]
        y, after = self.model(x.unsqueeze(1), layers)
        return (y if y.dim() == 2 else y[:, 0], *(s.clone() for layer in after for s in layer))


def one_step(network: Network, name: str) -> OneStep:
    """The network as a function of one step.

    Raises:
        ConfigError: it keeps no state from step to step.
    """
    if not network.sequential or not len(network.cells):
        raise ConfigError(
            f"--step does not apply to model={name}, which keeps no state from step to step: leave --step out."
        )
    return OneStep(frozen(network)).eval()


def states_of(step: OneStep) -> list[dict[str, Any]]:
    """The states of one sequence: names of input and output, shape, type, and the values before the first step."""
    return [
        {
            "input": f"s{i}",
            "output": f"s{i}_next",
            "shape": list(s.shape[1:]),
            "dtype": str(s.dtype).removeprefix("torch."),
            "initial": s[0].tolist() if s.any() else 0,
        }
        for i, s in enumerate(step.initial(1))
    ]


def stepped(run_step: Session, states: str, every: bool) -> Callable[[Tensor], Tensor]:
    """A function of whole sequences, which takes one step after the other.

    Args:
        run_step: what a file computes: outputs in order, of inputs by name.
        states: `states_of` it, in JSON.
        every: whether every output counts, not the last alone.
    """
    known = json.loads(states)

    def compute(x: Tensor) -> Tensor:
        now = {
            one["input"]: np.broadcast_to(np.asarray(one["initial"], one["dtype"]), (len(x), *one["shape"])).copy()
            for one in known
        }
        outputs = []
        for x_t in x.unbind(1):
            y, *after = run_step({"x": x_t.numpy(), **now})
            now = {one["input"]: s for one, s in zip(known, after, strict=True)}
            outputs.append(torch.from_numpy(y))
        return torch.stack(outputs, dim=1) if every else outputs[-1]

    return compute
