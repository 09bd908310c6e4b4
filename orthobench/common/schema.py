"""The schema of the configuration: the constructors' own signatures.

A hyper-parameter is declared once, as an annotated argument of the class that uses it. `coerce` checks one value
against its annotation, `fields` lists what a class accepts, and `did_you_mean` turns a wrong word into a useful
sentence.
"""

import difflib
import inspect
import math
import types
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from orthobench.errors import ConfigError

SHOWN = 80  # names at most in a message


@dataclass(frozen=True)
class Range:
    """Bounds of a number; `above` excludes the lower bound, `below` the upper one."""

    low: float | None = None
    high: float | None = None
    above: bool = False
    below: bool = False

    def contains(self, value: float) -> bool:
        """Return True if `value` lies within the bounds."""
        if self.low is not None and (value <= self.low if self.above else value < self.low):
            return False
        return self.high is None or (value < self.high if self.below else value <= self.high)

    def __str__(self) -> str:
        parts = []
        if self.low is not None:
            parts.append(f"{'>' if self.above else '>='} {self.low}")
        if self.high is not None:
            parts.append(f"{'<' if self.below else '<='} {self.high}")
        return " and ".join(parts)


@dataclass(frozen=True)
class OneOf:
    """Set of allowed words that is looked up only when a value is checked."""

    words: Callable[[], Iterable[str]]


@dataclass(frozen=True)
class CountOf:
    """A count tied to the hidden size n: an integer, a share of n between 0 and 1, or `max`."""


LARGEST = {int: 2**64 - 1, float: 3.4028234663852886e38}  # what 64 bits and a 32-bit float hold
NAMES = {int: "a whole number", float: "a number", str: "a word", bool: "true or false", list: "a list"}
Positive = Annotated[int, Range(1)]
NonNegative = Annotated[int, Range(0)]
PositiveFloat = Annotated[float, Range(0, above=True)]
NonNegativeFloat = Annotated[float, Range(0)]
Fraction = Annotated[float, Range(0, 1, below=True)]
OptionalPositive = Annotated[int | None, Range(1)]
OptionalPositiveFloat = Annotated[float | None, Range(0, above=True)]
Count = Annotated[int | float | str, CountOf()]


@dataclass(frozen=True)
class Field:
    """Argument of a constructor."""

    name: str
    annotation: Any
    default: Any = inspect.Parameter.empty

    @property
    def required(self) -> bool:
        """Return True if the argument has no default."""
        return self.default is inspect.Parameter.empty


@lru_cache(maxsize=256)
def fields(cls: type) -> Mapping[str, Field]:
    """The arguments of a class's constructor by name, through `**kwargs` to its bases; read-only, as it is kept."""
    found: dict[str, Field] = {}
    for klass in cls.__mro__:
        init = klass.__dict__.get("__init__")
        if init is None:
            continue
        hints = get_type_hints(init, include_extras=True)
        passes_on = False
        for name, parameter in list(inspect.signature(init).parameters.items())[1:]:
            if parameter.kind is parameter.VAR_KEYWORD:
                passes_on = True
            elif parameter.kind is not parameter.VAR_POSITIONAL:
                found.setdefault(name, Field(name, hints.get(name, Any), parameter.default))
        if not passes_on:
            break
    return types.MappingProxyType(found)


def closest(word: str, options: Iterable[str]) -> str | None:
    """The option that a word is most like, whatever the case; None where it is like none."""
    options = sorted(options)
    caseless = [option for option in options if option.lower() == word.lower()]
    close = caseless or difflib.get_close_matches(word, options, n=1, cutoff=0.6)
    return close[0] if close else None


def did_you_mean(word: str, allowed: Iterable[str]) -> str:
    """`; did you mean 'x'?`, or the whole list when nothing is close."""
    options = sorted(map(str, allowed))
    close = closest(str(word), options)
    if close is not None:
        return f"did you mean {close!r}?"
    more = f" and {len(options) - SHOWN} more" if len(options) > SHOWN else ""
    return f"allowed: {', '.join(options[:SHOWN])}{more}" if options else "none is allowed here"


def refuse_unknown(words: Iterable[Any], allowed: Collection[str], before: str, after: str) -> None:
    """Refuse the first word that is not allowed, with a sentence of what stands before it and after it.

    Raises:
        ConfigError: there is one.
    """
    for word in words:
        if word not in allowed:
            raise ConfigError(f"{before}{word}{after}: {did_you_mean(str(word), allowed)}")


def coerce(value: Any, annotation: Any, key: str) -> Any:
    """`value` as the type that `annotation` asks for.

    Raises:
        ConfigError: wrong type, outside the range or not one of the allowed words.
    """
    if annotation is Any or annotation is inspect.Parameter.empty:
        return value
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        base, *notes = arguments
        for note in notes:
            if isinstance(note, OneOf):
                return coerce(value, Literal[tuple(note.words())], key)
        value = coerce(value, base, key)
        for note in notes:
            if isinstance(note, Range) and isinstance(value, int | float) and not note.contains(value):
                raise ConfigError(f"{key}={value} is out of range: it must be {note}.")
        return value
    if origin in (Union, types.UnionType):
        return _coerce_union(value, arguments, key)
    if origin is Literal:
        if value in arguments and not isinstance(value, bool):
            return value
        if isinstance(value, int) and str(value) in arguments:  # a word such as 2015, read as a number
            return str(value)
        raise ConfigError(f"{key}={value!r} is not known: {did_you_mean(str(value), map(str, arguments))}")
    if origin in (list, tuple):
        if not isinstance(value, list | tuple):
            raise ConfigError(f"{key}={value!r} must be a list, for example {key}=[...].")
        return [coerce(item, arguments[0], f"{key}[{i}]") for i, item in enumerate(value)]
    return _coerce_plain(value, annotation, key)


def _coerce_union(value: Any, options: tuple[Any, ...], key: str) -> Any:
    if value is None and type(None) in options:
        return None
    kinds = [option for option in options if option is not type(None)]
    exact = [kind for kind in kinds if _plain(kind) is type(value)]
    if len(exact) == 1:
        return coerce(value, exact[0], key)
    failure: ConfigError | None = None
    for kind in kinds:
        try:
            return coerce(value, kind, key)
        except ConfigError as error:
            failure = failure or error
    assert failure is not None
    number = isinstance(value, int | float) and not isinstance(value, bool)
    word = isinstance(value, str) and any(get_origin(kind) is Literal for kind in kinds)
    if len(kinds) == 1 or number or word:
        raise failure
    names = dict.fromkeys(NAMES.get(_plain(kind), getattr(kind, "__name__", str(kind))) for kind in kinds)
    raise ConfigError(f"{key}={value!r} has the wrong type: {' or '.join(names)} is needed.")


def _plain(annotation: Any) -> Any:
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def _coerce_plain(value: Any, kind: Any, key: str) -> Any:
    if kind is bool and isinstance(value, bool):
        return value
    if kind is int and not isinstance(value, bool):
        if isinstance(value, int | float) and LARGEST[int] < abs(value) < math.inf:
            raise ConfigError(f"{key}={str(value)[:30]} is out of range: a whole number must be below 2**64.")
        if isinstance(value, int):
            return value
        if isinstance(value, float) and value.is_integer():
            return int(value)
    if kind is float and not isinstance(value, bool) and isinstance(value, int | float):
        if not abs(value) <= LARGEST[float]:
            too_large = ": it is too large for 32 bits" if abs(value) < math.inf else ""
            raise ConfigError(f"{key}={str(value)[:30]} must be a finite number{too_large}.")
        return float(value)
    if kind is str and isinstance(value, str):
        return value
    if kind in (list, dict) and isinstance(value, kind):
        return value
    if kind not in NAMES and (not isinstance(kind, type) or isinstance(value, kind)):
        return value
    raise ConfigError(
        f"{key}={value!r} has the wrong type: {NAMES.get(kind, getattr(kind, '__name__', kind))} is needed."
    )


def resolve_count(value: int | float | str, limit: int, key: str) -> int:
    """The whole number that a count, a share of `limit` (rounded down, but at least one) or `max` stands for.

    Raises:
        ConfigError: outside 0..limit, 1.0, which may be a count or a share, or a word other than `max`.
    """
    allowed = f"it must be a count from 0 to {limit}, a share between 0 and 1 (such as 0.5), or max."
    if value == "max":
        return limit
    if isinstance(value, str | bool):
        raise ConfigError(f"{key}={value!r} is not a count: {allowed}")
    if isinstance(value, float) and 0 < value < 1:
        return min(max(1, math.floor(value * limit + 1e-9)), limit)
    if isinstance(value, float) and value == 1:
        raise ConfigError(f"{key}=1.0 may mean one or all of them: write 1 for one, or max for all {limit}.")
    if not 0 <= value <= limit or value != int(value):
        raise ConfigError(f"{key}={value} is out of range: {allowed}")
    return int(value)
