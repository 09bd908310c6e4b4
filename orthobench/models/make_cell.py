"""Cells and their recurrent matrices from settings and classes."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import torch

from orthobench.cells.base import Cell
from orthobench.errors import ConfigError
from orthobench.parametrizations.base import Parametrization
from orthobench.parametrizations.free import Free
from orthobench.schema import fields, resolve_count


def make_cell(
    given: Mapping[str, Any], cell: Any, recurrent: Any, rng: np.random.Generator, input_size: int, hidden_size: int
) -> Cell:
    """A cell with initial values from `rng`.

    Args:
        given: settings of the cell and of its recurrent matrices; those that neither takes are left out, and those
            tied to the hidden size may be shares of it.
        cell: the class of the cell.
        recurrent: the class of the constrained recurrent matrices' parametrization.
        rng: generator for the initial values.
        input_size: I.
        hidden_size: N.

    Raises:
        ConfigError: a setting does not suit the hidden size or the others.
    """
    make = partial(make_recurrent, given, recurrent, hidden_size, rng)
    arguments = {**chosen(given, cell), "hidden_size": hidden_size}
    given_all = {"input_size": input_size, "rng": rng, "make_recurrent": make, **arguments}
    return cell(**given_all) if cell.__module__.startswith("orthobench.") else _tried(cell, given_all)


def _tried(cell: Any, arguments: dict[str, Any]) -> Cell:
    """A cell of a class from outside the package, after one step with two sequences.

    Raises:
        ConfigError: it cannot be made, or its step breaks the contract of `Cell`.
    """
    where = f"{cell.__name__} in {cell.__module__}"
    try:
        made = cell(**arguments)
        kinds = (made.U.dtype, made.U.dtype.to_complex())
        odd = next(((name, p.dtype) for name, p in made.named_parameters() if p.dtype not in kinds), None)
        with torch.no_grad():
            x = made.U.new_zeros(2, 1, made.input_size)
            answer = None if odd else made.step(made.project(x)[0], made.initial_state(2), made.matrices())
    except ConfigError:
        raise
    except Exception as error:
        told = " ".join(str(error).split())
        raise ConfigError(
            f"{where}: making it, and one step of two sequences, ends in {type(error).__name__}: {told}."
        ) from error
    if odd:
        raise ConfigError(f"{where}: its parameter {odd[0]} is in {odd[1]}, the others are in {kinds[0]}.")
    if made.returns_output and (not isinstance(answer, tuple) or len(answer) != 2):
        raise ConfigError(f"{where}: with returns_output, `step` returns the pair (output, state).")
    state = answer[1] if made.returns_output else answer
    wanted = [(2, *shape) for shape in made.state_shapes()]
    if not isinstance(state, tuple):
        raise ConfigError(
            f"{where}: `step` returns a {type(state).__name__} and not a tuple of states, such as `(h,)`."
        )
    shapes = [tuple(part.shape) for part in state]
    if shapes != wanted:
        raise ConfigError(f"{where}: `step` returns states of shapes {shapes} for two sequences, not {wanted}.")
    return made


def make_recurrent(
    given: Mapping[str, Any],
    recurrent: Any,
    n: int,
    rng: np.random.Generator,
    constrained: bool,
    gates: int,
    input_size: int,
) -> Parametrization:
    """The parametrization of one (n, n) matrix: of class `recurrent`, or `Free` where it is not constrained."""
    cls: Any = recurrent if constrained else Free
    arguments = chosen(given, cls)
    for key, limit in cls.limits(n).items():
        arguments[key] = fitted(arguments[key], limit, key)
    if "fan_in" in fields(cls):
        arguments |= {"fan_in": input_size + n, "fan_out": gates * n}
    return cls(n=n, rng=rng, **arguments)


def chosen(given: Mapping[str, Any], cls: type) -> dict[str, Any]:
    """The entries of `given` that the constructor of `cls` takes."""
    return {key: given[key] for key in fields(cls) if key in given}


def fitted(value: int | float | str, limit: int, key: str) -> int:
    """What a layer narrower than the hidden size makes of a count that is tied to its size: a share, or the count."""
    count = not isinstance(value, str) and value >= 1
    return min(int(value), limit) if count else resolve_count(value, limit, f"model.{key}")
