"""Words about tables that `plan` and `reproduce` have in common: which tables, rows and seeds are meant."""

import argparse
from dataclasses import dataclass

from orthobench.config.words import MOST, choices, key, shortened
from orthobench.errors import ConfigError
from orthobench.study.catalogue import Catalogue
from orthobench.study.reproduce.selection import Selection
from orthobench.study.tables.table import FULL, PUBLISHED
from orthobench.verbs.arguments import Parser

DIGITS = 20  # of the largest seed
NONE = "(no text)"
WORDS = {
    "--seeds": "how many seeds (1, 2, ...), or which ones: 10, 4..10 or 1,2,7; default: those of the table",
    "--models": "cells of a searched table, such as mine,gru; a model of --config-dir joins its rows",
    "--preset": "full, or a shortened version, which fills a table of its own: short, smoke",
    "--cheapest": "rows of published tables that fit into so many hours of one core, most results an hour first: 40h",
}
METAVARS = {"--models": "A,B", "--cheapest": "TIME"}


def add_options(parser: Parser) -> None:
    """Accept the options that choose rows and seeds of tables."""
    for option, words in WORDS.items():
        parser.add_argument(option, metavar=METAVARS.get(option), help=words)


@dataclass(frozen=True)
class Asked:
    """Tables that are named, with the rows and seeds of them that are meant.

    Attributes:
        names: tables, papers or all.
        rows, seeds: some of them; None for those of the table.
        models: cells of searched tables; None for all that these have.
        extra: further words for every run, which must not change its numbers.
    """

    names: tuple[str, ...]
    rows: tuple[str, ...] | None
    seeds: tuple[int, ...] | None
    extra: tuple[str, ...]
    models: tuple[str, ...] | None = None

    @classmethod
    def of(cls, overrides: list[str], given: argparse.Namespace | None = None) -> "Asked":
        """`TABLE... [experiment=TABLE] [cell=A,B] [seed=1,2]` and other words; without a table all are others.

        Raises:
            ConfigError: not Hydra's grammar, no seed that is a whole number from 1 on, or no model.
        """
        names, seeds, models = (), None, None
        if given is not None:
            names = given.names or (["all"] if given.cheapest else [])
            seeds = None if given.seeds is None else seeds_of(given.seeds)
            models = None if given.models is None else _models(given.models)
        if not names and not any(key(word) == "experiment" for word in overrides):
            return cls((), None, seeds, tuple(overrides), models)
        found = {key(word): choices(word) for word in overrides if key(word) in ("experiment", "cell", "seed")}
        rows = tuple(found["cell"]) if "cell" in found else None
        if seeds is None and "seed" in found:
            seeds = tuple(map(_whole, found["seed"]))
        rest = tuple(word for word in overrides if key(word) not in found)
        return cls((*names, *found.get("experiment", ())), rows, seeds, rest, models)

    def selection(self, catalogue: Catalogue, preset: str | None = None) -> Selection:
        """The selection in the tables of a catalogue.

        Raises:
            ConfigError: no such table, or published row, or `--models` beside `cell=` or a table whose rows are fixed.
        """
        tables = catalogue.select(self.names)
        if self.models is not None and self.rows is not None:
            raise ConfigError("--models and cell= both say which cells are meant; give one of them.")
        for table in tables if self.rows is not None else ():
            if table.track == PUBLISHED:
                for row in table.trained(self.rows):
                    table.row(row)  # which refuses a name that is none of its rows, before the slow imports
        fixed = None if self.models is None else next((table.name for table in tables if table.search is None), None)
        if fixed is not None:
            raise ConfigError(
                f"--models is for searched tables, such as fair2/cued_copying; {fixed} has rows of its own."
            )
        return Selection(tables, preset or FULL, self.seeds, self.rows, self.extra, self.models)


def _models(text: str) -> tuple[str, ...]:
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    if not names:
        raise ConfigError("--models needs one or more names, such as --models mine,gru.")
    return names


def seeds_of(text: str) -> tuple[int, ...]:
    """`3` is the first three, `4..10` is from 4 to 10, `1,2,7` are these.

    Raises:
        ConfigError: it is none of these.
    """
    if "," in text and ".." not in text:
        chosen = tuple(_whole(part.strip()) for part in text.split(",") if part.strip())
        if not chosen:
            raise ConfigError(f"--seeds {text} has no seed; name one or more, such as --seeds 1,2,7.")
        return chosen
    first, dots, last = text.partition("..")
    low, high = (_whole(first), _whole(last)) if dots else (1, _whole(text))
    if low > high:
        raise ConfigError(f"--seeds {text} has no seed; write {last}..{first}.")
    if high - low >= MOST:
        raise ConfigError(f"--seeds has {high - low + 1:,} seeds; {MOST:,} may be asked for at once: ask for fewer.")
    return tuple(range(low, high + 1))


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= DIGITS) or int(text) < 1:
        raise ConfigError(f"seed {shortened(text) or NONE} is not a whole number from 1 on: give one.")
    return int(text)
