"""Cells and networks with random float64 parameters, and their parameters as NumPy arrays."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn

from orthobench.cells.base import Cell
from orthobench.models.recurrent import Recurrent
from orthobench.parametrizations.base import Parametrization
from orthobench.parametrizations.free import Free


def recurrent_maker(n: int, rng: np.random.Generator, constrained_class: type = Free) -> Callable[..., Parametrization]:
    """What a cell calls to make the recurrent matrix of one gate."""

    def make(constrained: bool, **_: Any) -> Parametrization:
        return (constrained_class if constrained else Free)(n=n, rng=rng)

    return make


def untouched_cell(cls: type, input_size: int = 3, hidden_size: int = 4, recurrent: type = Free, **kwargs: Any) -> Any:
    """A cell with its own initial values, in float64."""
    rng = np.random.default_rng(11)
    make = recurrent_maker(hidden_size, rng, recurrent)
    return cls(input_size=input_size, hidden_size=hidden_size, rng=rng, make_recurrent=make, **kwargs).double()


def random_cell(cls: type, **kwargs: Any) -> Any:
    """A cell whose every parameter, biases included, is random."""
    return randomise(untouched_cell(cls, **kwargs))


def network(
    cls: type, hidden_size: int = 4, recurrent: type = Free, cell: dict[str, Any] | None = None, **kwargs: Any
) -> Recurrent:
    """A network of one cell whose every parameter is random."""
    rng = np.random.default_rng(12)

    def make_cell(input_size: int, n: int) -> Cell:
        make = recurrent_maker(n, rng, recurrent)
        return cls(input_size=input_size, hidden_size=n, rng=rng, make_recurrent=make, **(cell or {}))

    arguments = {"input_size": 3, "output_size": 2, "readout": "all", "hidden_size": hidden_size, **kwargs}
    return randomise(Recurrent(make_cell=make_cell, rng=rng, **arguments).double())


def randomise(module: Any) -> Any:
    rng = np.random.default_rng(13)
    with torch.no_grad():
        for p in module.parameters():
            p.copy_(torch.from_numpy(rng.normal(scale=0.6, size=p.shape)))
    return module


def draw(*shape: int, seed: int = 14) -> torch.Tensor:
    """Normal draws in float64."""
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape))


def tokens(*shape: int, width: int = 3) -> torch.Tensor:
    """Tokens below `width`."""
    return torch.from_numpy(np.random.default_rng(15).integers(0, width, size=shape))


def arrays(cell: Cell) -> dict[str, np.ndarray]:
    """U_<gate>, b_<gate>, W_<matrix>, and every parameter of the cell's own by its name."""
    found = dict(cell.named_parameters(recurse=False))
    found |= {f"U_{gate}": U for gate, U in zip(cell.gates, cell.U.chunk(len(cell.gates)), strict=True)}
    found |= {f"b_{gate}": b for gate, b in cell.b.items()} | {f"W_{name}": W() for name, W in cell.recurrent.items()}
    return {name: tensor.detach().numpy() for name, tensor in found.items()}


def sigmoid(z: Any) -> Any:
    return 1 / (1 + np.exp(-z))


def silu(z: Any) -> Any:
    return z * sigmoid(z)


def gradients(module: nn.Module) -> list[torch.Tensor | None]:
    """The gradient of every parameter."""
    return [p.grad for p in module.parameters()]


def jacobian_by_autograd(cell: Cell, x: torch.Tensor) -> torch.Tensor:
    """d h_T / d h_1 of one sequence x (1, T, I), as autograd has it."""
    W, p = cell.matrices(), cell.project(x)
    _, state = cell.advance(p[0], cell.initial_state(1), W)

    def last(first: torch.Tensor) -> torch.Tensor:
        after = (first.view_as(state[0]), *state[1:])
        for p_t in p[1:]:
            _, after = cell.advance(p_t, after, W)
        return after[0].flatten()

    return torch.autograd.functional.jacobian(last, state[0].flatten())
