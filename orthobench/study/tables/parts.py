"""The parts of a table's file, checked: its mappings, the rows of its grid, its figures, words and seeds."""

import re
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from orthobench.common.schema import Positive, coerce, refuse_unknown
from orthobench.config.policy import COMMAND_LINE_ALONE
from orthobench.config.words import MOST, key, refuse_twice
from orthobench.errors import ConfigError
from orthobench.study.tables.figure import FIGURE_KINDS, Figure

PRESET_KEYS: dict[str, Any] = {"seeds": Positive, "overrides": list[str]}
NUMBER = re.compile(r"\d+(\.\d+)?(e-?\d+)?")
SOLVED = ("stopping.threshold", "stopping.hold")  # when a run of a searched table has solved its task


@dataclass(frozen=True)
class GridPlace:
    """The place of a row in a grid: its name without the grid, and its place on every axis."""

    base: str
    places: dict[str, str]


@dataclass(frozen=True)
class Preset:
    """A shortened version of a table: its first `seeds` seeds, with further overrides."""

    seeds: int
    overrides: tuple[str, ...]


def checked(content: Any, keys: dict[str, Any], required: tuple[str, ...], place: str) -> dict[str, Any]:
    """A mapping with all required and no other than known keys, its values as the keys' types.

    Raises:
        ConfigError: it is not one.
    """
    if not isinstance(content, dict):
        raise ConfigError(f"{place}a mapping is needed, with {', '.join(required)}.")
    refuse_unknown(content, keys, place, " is not a key here")
    missing = [name for name in required if content.get(name) is None]
    if missing:
        raise ConfigError(f"{place}{', '.join(missing)} is missing: add it.")
    empty = [name for name in ("cells", "seeds") if name in content and content[name] in ({}, [])]
    if empty and "track" in required:
        raise ConfigError(f"{place}{', '.join(empty)} is empty: give one or more.")
    return {name: coerce(body, keys[name], f"{place}{name}") for name, body in content.items()}


def like(given: dict[str, Any], other: dict[str, Any], place: str) -> dict[str, Any]:
    """Combine a table with the other that it is `like:`; its own keys win, and title and claims are not taken over.

    Of the common overrides those of other keys stay, and of the cells those of other names, or those of `only:`; its
    own cells are kept.

    Raises:
        ConfigError: the other table is like a third one, or `only:` names a cell that there is not.
    """
    if "like" in other:
        raise ConfigError(f"{place}like: {given['like']} is like {other['like']} itself; name that one.")
    own = {key(str(word)) for word in given.get("common", ())}
    common = [word for word in other.get("common", ()) if key(word) not in own] + given.get("common", [])
    cells = other.get("cells", {}) | given.get("cells", {})
    only = given.get("only", list(cells))
    refuse_unknown(only, cells, f"{place}only: ", f" is no cell of {given['like']}")
    only = [*only, *(name for name in given.get("cells", {}) if name not in only)]
    return (
        {name: body for name, body in other.items() if name not in ("title", "claims")}
        | given
        | {"common": common, "cells": {name: cells[name] for name in only}}
    )


def refuse_endless(cells: int, grid: dict[Any, Any], given: dict[str, Any], place: str) -> None:
    """Count the runs of a table before they are made.

    Raises:
        ConfigError: there are more than MOST.
    """
    sizes = [len(coerce(choices, dict, f"{place}grid.{axis}")) for axis, choices in grid.items()]
    runs = cells * prod(sizes) * max(len(given.get("rates", ())), 1) * max(len(given["seeds"]), 1)
    if runs > MOST:
        told = f"{runs:,}" if runs < 10**15 else "more than 10**15"
        raise ConfigError(
            f"{place}cells, grid, rates and seeds give {told} runs; a table may have {MOST:,}; leave some out."
        )


def crossed(
    cells: dict[Any, list[str]], grid: dict[Any, Any], place: str
) -> tuple[dict[str, tuple[str, ...]], dict[str, GridPlace]]:
    """Every row at every place of a grid, and these variants; without a grid the rows themselves."""
    for axis, choices in grid.items():
        for name, words in coerce(choices, dict, f"{place}.{axis}").items():
            check_words(words, f"{place}.{axis}.{name}")
            for cell, own in cells.items():
                refuse_twice([*own, *words], f"{place}.{axis}.{name} and the cell {cell}: ")
    rows, variants = {}, {}
    for cell, words in cells.items():
        for chosen in product(*(choices.items() for choices in grid.values())):
            places = {str(axis): str(name) for axis, (name, _) in zip(grid, chosen, strict=True)}
            name = "_".join([str(cell), *(axis + at for axis, at in places.items())])
            rows[name] = tuple(words) + tuple(word for _, more in chosen for word in more)
            if grid:
                variants[name] = GridPlace(str(cell), places)
    return rows, variants


def presets(given: dict[str, Any], known: tuple[str, ...], place: str) -> dict[str, Preset]:
    """The shortened versions of a table by name.

    Raises:
        ConfigError: a name is not known, or a key is wrong.
    """
    found = {}
    refuse_unknown(given, known, f"{place}preset ", " is not known")
    for preset, body in given.items():
        short = checked(body, PRESET_KEYS, tuple(PRESET_KEYS), f"{place}presets.{preset}.")
        check_words(short["overrides"], f"{place}presets.{preset}")
        found[preset] = Preset(short["seeds"], tuple(short["overrides"]))
    return found


def unstated(given: Any, rows: Collection[str], place: str) -> dict[str, tuple[str, ...]]:
    """Settings that the paper leaves out, by row; a list is of every row."""
    by_row = coerce(given, dict, place) if isinstance(given, dict) else dict.fromkeys(rows, given)
    refuse_unknown(by_row, rows, f"{place}: ", " is not a row")
    return {row: tuple(coerce(names, list[str], f"{place}.{row}")) for row, names in by_row.items()}


def figure(body: Any, place: str) -> Figure:
    """A figure of a table.

    Raises:
        ConfigError: it is of no kind, or of two.
    """
    keys = {"title": str, "cells": list[str], **dict.fromkeys(FIGURE_KINDS, list[str])}
    given = checked(body, keys, ("title",), place)
    kinds = [kind for kind in FIGURE_KINDS if kind in given]
    if len(kinds) != 1 or (kinds[0] != "curve" and len(given[kinds[0]]) != 1):
        known = ", ".join(FIGURE_KINDS)
        raise ConfigError(
            f"{place}{given['title']} needs one of {known}; only a curve may have several: name one model."
        )
    return Figure(given["title"], kinds[0], tuple(given[kinds[0]]), tuple(given.get("cells", ())))


def check_words(words: Any, place: str) -> None:
    """Look at overrides.

    Raises:
        ConfigError: one of them is none, or not a table's to set, or two are of one key.
    """
    refuse_twice(coerce(words, list[str], place), f"{place}: ")
    for word in words:
        name = key(word).split(".")[0].split("/")[0].lstrip("~")
        if "=" not in word or name in ("seed", "experiment", "cell", "hydra", *COMMAND_LINE_ALONE):
            raise ConfigError(f"{place}: {word!r} is not an override that a table may set: delete it.")


def refuse_unfair(words: list[str], place: str) -> None:
    """Refuse what would give one row of a fair table another task, budget or training than the others.

    Raises:
        ConfigError: an override is of something other than the model.
    """
    other = next((word for word in words if key(word).split(".")[0] != "model"), None)
    if other is not None:
        raise ConfigError(
            f"{place}: {other!r} is not the model's: in a fair table all rows have the same task, budget and training; "
            "put what is the same for all into common:."
        )


def check_seeds(seeds: list[int], name: str) -> None:
    """Look at seeds.

    Raises:
        ConfigError: one is listed twice.
    """
    if len(set(seeds)) < len(seeds):
        twice = min(seed for seed, count in Counter(seeds).items() if count > 1)
        raise ConfigError(
            f"{name}: seed {twice} is listed twice, which would count one run as two: delete one of them."
        )


def rates(given: dict[str, Any], rows: Collection[str], place: str) -> tuple[str, ...]:
    """The rates that are tried, as they are written: two or more, each once, where the paper leaves the rate out."""
    tried = tuple(str(rate) for rate in given.get("rates", ()))
    if not tried:
        return ()
    left_out = unstated(given.get("unstated", []), rows, f"{place}unstated")
    stated = next((row for row in rows if "rate" not in left_out.get(row, ())), None)
    if stated is not None:
        raise ConfigError(
            f"{place}rates: are where the paper states none; add {stated} to unstated: with rate, or delete rates:."
        )
    numbers = {float(rate) for rate in tried if NUMBER.fullmatch(rate)}
    if len(numbers) < max(2, len(tried)) or min(numbers) <= 0:
        raise ConfigError(f"{place}rates: two or more different numbers above 0 are needed, such as [1e-3, 3e-3].")
    return tried


def check_search(given: dict[str, Any], place: str) -> None:
    """Look at the keys of a searched table.

    Raises:
        ConfigError: one is missing, or does not go with it.
    """
    searches = given["track"] == "searched"
    if searches != ("search" in given) or (searches and not given.get("score")):
        raise ConfigError(f"{place}a searched table needs search: and score:, and no other table has search:.")
    if "claims" in given and given["track"] == "published":
        raise ConfigError(
            f"{place}claims: are those of a fair or a searched table; "
            "a paper's are in results/published, so move them there."
        )
    for name in ("grid", "rates") if searches else ():
        if given.get(name):
            raise ConfigError(f"{place}{name}: is not for a searched table; give each case a table of its own.")
    missing = [name for name in SOLVED if name not in map(key, given.get("common", ()))]
    if searches and missing:
        raise ConfigError(
            f"{place}common: {', '.join(missing)} says when a run has solved the task, and is missing: add it."
        )


def factors(given: dict[str, Any], cells: Iterable[str], place: str) -> dict[str, dict[str, list[str]]]:
    """The levels of every factor of a design, by the beginning of the names of its cells.

    Raises:
        ConfigError: a factor has one level, or a combination of levels has no cell.
    """
    found = {str(family): coerce(design, dict, f"{place}.{family}") for family, design in given.items()}
    for family, design in found.items():
        for factor, levels in design.items():
            if len(coerce(levels, list[str], f"{place}.{family}.{factor}")) < 2:
                raise ConfigError(f"{place}.{family}.{factor}: two or more levels are needed.")
        names = ("_".join((family, *levels)) for levels in product(*design.values()))
        missing = next((name for name in names if name not in cells), None)
        if missing is not None:
            raise ConfigError(
                f"{place}.{family}: the table has no cell {missing}, which its levels make: add it, "
                "or leave a level out."
            )
    return found
