"""From a layer's keyword arguments to checked settings and classes."""

from dataclasses import dataclass
from typing import Any

from orthobench.cells.base import Cell
from orthobench.common import registry
from orthobench.common.schema import coerce, did_you_mean
from orthobench.config.check import recurrence_fields, refuse_complex
from orthobench.config.files import Files
from orthobench.config.settings import tied_counts
from orthobench.errors import ConfigError
from orthobench.parametrizations.base import Parametrization
from orthobench.parametrizations.neumann_cayley import NeumannCayley

MADE_BY_THE_LAYER = ("input_size", "hidden_size", "rng", "make_recurrent", "n", "fan_in", "fan_out")


OF_TORCH = {
    "bias": (True, "every cell has the biases of its paper"),
    "bidirectional": (False, "run a second layer over the sequences in reverse, and concatenate"),
    "proj_size": (0, "put an nn.Linear behind the layer"),
}


@dataclass(frozen=True)
class Resolved:
    """Parts of a layer: the classes of its cell and of its recurrent matrices, and their settings."""

    cell: Any
    recurrent: Any
    settings: dict[str, Any]


def refuse_of_torch(layer: str, **given: Any) -> None:
    """Refuse arguments of `nn.GRU` that have another value than its own default, which is all that a layer has.

    Raises:
        ConfigError: one has.
    """
    for key, (default, instead) in OF_TORCH.items():
        if given[key] != default:
            raise ConfigError(f"{layer}: {key}={given[key]!r} does not apply; use {key}={default}: {instead}.")


def resolve(layer: str, model: str | None, hidden_size: int, given: dict[str, Any]) -> Resolved:
    """The settings of `conf/model/<model>.yaml`, with those that were given in their place.

    Args:
        layer: the layer's name, for messages.
        model: the name of a model; None for no values but the constructors' own.
        hidden_size: N, which settings such as `rho` are checked against.
        given: settings of the cell and of the recurrent matrix by name; `cell` and `recurrent` are classes or names.

    Raises:
        ConfigError: an unknown setting, a wrong type, a value out of range, or settings that do not suit each other.
    """
    base = {} if model is None else Files().about("model", model)[1]
    cell = _class("cell", given.get("cell", base.get("cell", "elman")), layer)
    recurrent = _class("parametrization", given.get("recurrent", base.get("recurrent", "free")), layer)
    known = {k: v for k, v in recurrence_fields(cell, recurrent).items() if k not in MADE_BY_THE_LAYER}
    values = {key: value for key, value in base.items() if key in known}
    for key, value in given.items():
        if key in known:
            values[key] = value
        elif key not in ("cell", "recurrent"):
            raise ConfigError(f"{layer}: {key}={value!r} does not apply here: {did_you_mean(key, known)}")
    for key, field in known.items():
        if key in values:
            values[key] = coerce(values[key], field.annotation, f"{layer}: {key}")
        elif not field.required:
            values[key] = list(field.default) if isinstance(field.default, tuple) else field.default
    name = registry.snake_case(recurrent.__name__)
    refuse_complex(recurrent, values, cell, f"{layer}: recurrent={name} is a complex matrix, and the state is real")
    tied_counts(recurrent, name, hidden_size, values)
    if issubclass(recurrent, NeumannCayley) and values["variant"] == "code":
        why = "multiplies gradients by the optimizer's learning rate, which a layer does not know"
        raise ConfigError(f"{layer}: variant='code' {why}: use variant='paper'.")
    return Resolved(cell, recurrent, values)


def _class(kind: str, named: Any, layer: str) -> Any:
    """A class that was given by name, or as it is."""
    key, base = ("cell", Cell) if kind == "cell" else ("recurrent", Parametrization)
    if not isinstance(named, type):
        return registry.find(kind, named, f"{layer}: {key}")
    if not issubclass(named, base):
        raise ConfigError(f"{layer}: {key}={named.__name__} is no {kind}: it must be a subclass of {base.__name__}.")
    return named
