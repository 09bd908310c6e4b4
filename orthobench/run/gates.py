"""Gates of a cell along a sequence: every number between 0 and 1 that a step takes by a sigmoid."""

from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from orthobench.cells.base import Cell, Matrices, State
from orthobench.cells.scalar_gated import ScalarGated

SIGMOIDS = {"sigmoid": lambda value: value, "expit": lambda value: value, "log_sigmoid": torch.exp}
SPREAD = (0.1, 0.5, 0.9)  # quantiles over sequences and units


class _Seen(TorchFunctionMode):
    """Keeps the results of every sigmoid, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Tensor] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        read = SIGMOIDS.get(getattr(func, "__name__", ""))
        if read is not None:
            with torch._C.DisableTorchFunction():
                self.found.append(read(result))
        return result


def gates(cell: Cell, W: Matrices, projected: Tensor, state: State) -> dict[str, list[list[float]]]:
    """By name, for every time step, the quantiles SPREAD of a gate over sequences and units; {} without gates.

    Args:
        cell: the layer's cell.
        W: its matrices.
        projected: its projected inputs (T, B, ...).
        state: the initial state.
    """
    found: dict[str, list[list[float]]] = {}
    for p_t in projected.unbind(0):
        with _Seen() as seen:
            _, state = cell.advance(p_t, state, W)
        names = cell.opened or tuple(f"gate {number}" for number in range(1, len(seen.found) + 1))
        for name, value in zip(names, seen.found, strict=False):
            flat = value.detach().double().flatten()
            found.setdefault(name, []).append(flat.quantile(flat.new_tensor(SPREAD)).tolist())
    if isinstance(cell, ScalarGated):
        for name, value in (("alpha", float(cell.alpha())), ("beta", float(cell.beta()))):
            found[name] = [[value] * len(SPREAD)] * len(projected)
    return found
