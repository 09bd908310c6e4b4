import re
from typing import Annotated, Any, Literal

import pytest

from orthobench.common.schema import (
    Count,
    Field,
    Fraction,
    NonNegative,
    NonNegativeFloat,
    Positive,
    PositiveFloat,
    Range,
    coerce,
    did_you_mean,
    fields,
    resolve_count,
)
from orthobench.errors import ConfigError

Word = Literal["before", "after"]


@pytest.mark.parametrize(
    ("value", "annotation", "expected"),
    [
        (3, int, 3),
        (190.0, int, 190),
        (-3, int, -3),
        (3, float, 3.0),
        (1e-3, float, 0.001),
        ("a", str, "a"),
        (True, bool, True),
        ([1, "a"], list, [1, "a"]),
        ({"a": 1}, dict, {"a": 1}),
        (1, Positive, 1),
        (0, NonNegative, 0),
        (1e-300, PositiveFloat, 1e-300),
        (0, NonNegativeFloat, 0.0),
        (0.0, Fraction, 0.0),
        (0.999, Fraction, 0.999),
        ("after", Word, "after"),
        (None, Positive | None, None),
        (5.0, Positive | None, 5),
        (1, Positive | PositiveFloat, 1),
        (1.0, Positive | PositiveFloat, 1.0),
        (0.5, Positive | PositiveFloat, 0.5),
        (0.5, Count, 0.5),
        (95, Count, 95),
        ("max", Count, "max"),
        (0.01, str | float, 0.01),
        ("glorot", str | float, "glorot"),
        (2, str | float, 2.0),
        ([1, 2.0], list[Positive], [1, 2]),
        ((1, 2), list[int], [1, 2]),
        ([], list[int], []),
        (["c", "r"], list[Literal["c", "r"]], ["c", "r"]),
        ([[1], [2]], list[list[int]], [[1], [2]]),
        ("whatever", Any, "whatever"),
    ],
)
def test_coerce(value: Any, annotation: Any, expected: Any) -> None:
    found = coerce(value, annotation, "key")
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("value", "annotation", "message"),
    [
        (1.5, int, "key=1.5 has the wrong type: a whole number is needed."),
        ("3", int, "key='3' has the wrong type: a whole number is needed."),
        (True, int, "key=True has the wrong type: a whole number is needed."),
        (None, int, "key=None has the wrong type: a whole number is needed."),
        (float("inf"), int, "key=inf has the wrong type: a whole number is needed."),
        ("0.1", float, "key='0.1' has the wrong type: a number is needed."),
        (False, float, "key=False has the wrong type: a number is needed."),
        (float("nan"), float, "key=nan must be a finite number."),
        (float("-inf"), PositiveFloat, "key=-inf must be a finite number."),
        (3, str, "key=3 has the wrong type: a word is needed."),
        (1, bool, "key=1 has the wrong type: true or false is needed."),
        ("true", bool, "key='true' has the wrong type: true or false is needed."),
        ("a", list, "key='a' has the wrong type: a list is needed."),
        (0, Positive, "key=0 is out of range: it must be >= 1."),
        (4, Annotated[int, Range(1), Range(high=3)], "key=4 is out of range: it must be <= 3."),  # both notes hold
        (10**400, float, "must be a finite number: it is too large for 32 bits."),
        (-1, NonNegative, "key=-1 is out of range: it must be >= 0."),
        (0, PositiveFloat, "key=0.0 is out of range: it must be > 0."),
        (-1e-9, NonNegativeFloat, "key=-1e-09 is out of range: it must be >= 0."),
        (1.0, Fraction, "key=1.0 is out of range: it must be >= 0 and < 1."),
        (0, Positive | None, "key=0 is out of range: it must be >= 1."),
        (1.5, Positive | None, "key=1.5 has the wrong type: a whole number is needed."),
        (0, Positive | PositiveFloat, "key=0 is out of range: it must be >= 1."),
        (True, Positive | PositiveFloat, "key=True has the wrong type: a whole number or a number is needed."),
        ([1], Count, "key=[1] has the wrong type: a whole number or a number or a word is needed."),
        (None, str | float, "key=None has the wrong type: a word or a number is needed."),
        ("afterr", Word, "key='afterr' is not known: did you mean 'after'?"),
        ("xyz", Word, "key='xyz' is not known: allowed: after, before"),
        (None, Word, "key=None is not known: allowed: after, before"),
        (True, Literal[1, 2], "key=True is not known: allowed: 1, 2"),
        (3, list[int], "key=3 must be a list, for example key=[...]."),
        ("ab", list[str], "key='ab' must be a list, for example key=[...]."),
        ([1, 0], list[Positive], "key[1]=0 is out of range: it must be >= 1."),
        ([1, "b"], list[int], "key[1]='b' has the wrong type: a whole number is needed."),
    ],
)
def test_coerce_refuses(value: Any, annotation: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message) + "$"):
        coerce(value, annotation, "key")


@pytest.mark.parametrize(
    ("bounds", "value", "inside"),
    [
        (Range(1, 3), 1, True),
        (Range(1, 3), 3, True),
        (Range(1, 3), 0.999, False),
        (Range(1, 3), 3.001, False),
        (Range(1, 3, above=True), 1, False),
        (Range(1, 3, below=True), 3, False),
        (Range(high=3), -1e9, True),
        (Range(low=3), 1e9, True),
        (Range(), 0, True),
    ],
)
def test_range(bounds: Range, value: float, inside: bool) -> None:
    assert bounds.contains(value) is inside


@pytest.mark.parametrize(
    ("bounds", "text"),
    [(Range(0, 1, below=True), ">= 0 and < 1"), (Range(0, above=True), "> 0"), (Range(high=0.5), "<= 0.5")],
)
def test_range_in_words(bounds: Range, text: str) -> None:
    assert str(bounds) == text


@pytest.mark.parametrize(
    ("value", "limit", "expected"),
    [
        (0.7, 170, 119),  # 0.7 * 170 = 118.99999999999999
        (0.1, 512, 51),
        (0.5, 190, 95),
        (0.1, 170, 17),
        (0.3, 10, 3),
        (0.999, 10, 9),
        (0.001, 10, 1),
        (0.125, 7, 1),
        (0.5, 0, 0),
        ("max", 190, 190),
        (95.0, 190, 95),
        (95, 190, 95),
        (0, 190, 0),
        (0.0, 190, 0),
        (190, 190, 190),
        (1, 190, 1),
    ],
)
def test_resolve_count(value: Any, limit: int, expected: int) -> None:
    found = resolve_count(value, limit, "model.rho")
    assert (found, type(found)) == (expected, int)


RANGE, NO_COUNT = "{} is out of range: it must be a count from 0 to 190", "{!r} is not a count"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        *((value, RANGE) for value in (191, -1, 1.5, -0.5, 191.0, float("nan"), float("inf"), 1e300)),
        *((value, NO_COUNT) for value in ("half", "Max", "", True, False)),
        (1.0, "{} may mean one or all of them: write 1 for one, or"),
    ],
)
def test_what_is_no_count_is_refused(value: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape("model.rho=" + message.format(value))):
        resolve_count(value, 190, "model.rho")


@pytest.mark.parametrize(
    ("word", "allowed", "expected"),
    [
        ("scrnn", ["scornn", "lstm"], "did you mean 'scornn'?"),
        ("hiden_size", ["hidden_size", "layers"], "did you mean 'hidden_size'?"),
        ("xyz", ["b", "a"], "allowed: a, b"),
        ("xyz", [], "none is allowed here"),
        (3, [1, 2], "allowed: 1, 2"),
    ],
)
def test_did_you_mean(word: Any, allowed: list[Any], expected: str) -> None:
    assert did_you_mean(word, allowed) == expected


class Base:
    def __init__(self, a: Positive, b: float = 0.5) -> None: ...


class PassesOn(Base):
    def __init__(self, c: str = "x", b: float = 0.25, **kwargs: Any) -> None: ...


class Stops(PassesOn):
    def __init__(self, d: bool = True) -> None: ...


class Silent(PassesOn):
    """No constructor of its own."""


class TakesMore(Base):
    def __init__(self, *args: Any, e, **kwargs: Any) -> None: ...


@pytest.mark.parametrize(
    ("cls", "names"),
    [
        (Base, ["a", "b"]),
        (PassesOn, ["c", "b", "a"]),
        (Stops, ["d"]),
        (Silent, ["c", "b", "a"]),
        (TakesMore, ["e", "a", "b"]),
        (object, []),
    ],
)
def test_fields_are_those_of_the_constructors_that_are_reached(cls: type, names: list[str]) -> None:
    assert list(fields(cls)) == names


def test_a_field_keeps_the_nearest_declaration() -> None:
    assert fields(PassesOn)["b"] == Field("b", float, 0.25)
    assert fields(TakesMore)["e"].annotation is Any, "without an annotation it takes anything"
    assert {name: field.required for name, field in fields(Base).items()} == {"a": True, "b": False}
