"""Cells and their recurrent matrices from settings and classes."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from orthobench.cells.base import Cell
from orthobench.common.registry import is_ours
from orthobench.common.schema import fields, resolve_count
from orthobench.models.contract import tried_cell, tried_map
from orthobench.parametrizations.base import Parametrization
from orthobench.parametrizations.free import Free


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
        input_size: I, the width of an input.
        hidden_size: N, the number of units.

    Raises:
        ConfigError: a setting does not suit the hidden size or the others.
    """
    make = partial(make_recurrent, given, recurrent, hidden_size, rng)
    arguments = {**chosen(given, cell), "hidden_size": hidden_size}
    given_all = {"input_size": input_size, "rng": rng, "make_recurrent": make, **arguments}
    return cell(**given_all) if is_ours(cell) else tried_cell(cell, given_all)


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
    given_all = {"n": n, "rng": rng, **arguments}
    return cls(**given_all) if is_ours(cls) else tried_map(cls, given_all)


def chosen(given: Mapping[str, Any], cls: type) -> dict[str, Any]:
    """The entries of `given` that the constructor of `cls` takes."""
    return {key: given[key] for key in fields(cls) if key in given}


def fitted(value: int | float | str, limit: int, key: str) -> int:
    """Count in a layer narrower than the hidden size, of a count that is tied to it: a share, or the count."""
    count = not isinstance(value, str) and value >= 1
    return min(int(value), limit) if count else resolve_count(value, limit, f"model.{key}")
