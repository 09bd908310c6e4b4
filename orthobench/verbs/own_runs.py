"""Shared parts of `compare`, `plot` and `best`: words that name folders of a user's own runs, and their content."""

from pathlib import Path
from typing import TYPE_CHECKING

from orthobench.common.terminal import comment, complain, say
from orthobench.errors import ConfigError
from orthobench.study.catalogue import Catalogue

if TYPE_CHECKING:
    from orthobench.study.verdicts.own_tables import OwnTable


def folders(names: list[str], catalogue: Catalogue) -> list[Path]:
    """The names as folders; none of them where all are tables or papers, or unknown.

    Args:
        names: the words of the command line without `=`.
        catalogue: the tables and papers that are known.

    Raises:
        ConfigError: folders among tables.
    """
    tables = catalogue.options("experiment")
    known = {"all", *catalogue.papers(), *tables, *(table.split("/")[0] for table in tables)}
    found = [name for name in names if name not in known and (Path(name).exists() or _is_path(name))]
    if found and len(found) < len(names):
        raise ConfigError(f"{found[0]} is a folder and {(set(names) - set(found)).pop()} is none: name either alone.")
    return [Path(name) for name in found]


def tables(places: list[Path], words: list[str]) -> "list[OwnTable]":
    """The tables of the runs in some folders, after a line about each reason to leave some out, and one with counts.

    Args:
        places: the folders.
        words: `key=value,value`, which choose among the runs.

    Raises:
        ConfigError: no folder, no finished run in it, or none that the words choose.
    """
    from orthobench.study.records import own_runs
    from orthobench.study.verdicts import own_tables

    found = own_runs.read(places)
    for why, alike in found.why_left_out().items():
        others = f" and {len(alike) - 1} more" * (len(alike) > 1)
        complain(f"orthobench: {alike[0]}{others}: {why}.")
    if not found.finished:
        raise ConfigError(
            f"{', '.join(map(str, places))}: none of the runs is finished: run the command of the sweep again."
        )
    chosen = found.of(words)
    left = f", {len(found.left_out)} left out" if found.left_out else ""
    others = f", {len(chosen.finished)} of them chosen" if words else ""
    count = len(found.finished)
    say(comment(f"{', '.join(map(str, places))}: {count} finished run{'s' * (count != 1)}{left}{others}"))
    if not chosen.finished:
        raise ConfigError(f"no run has all of {' '.join(words)}: ask for fewer settings at once.")
    return own_tables.tables(chosen.finished)


def _is_path(name: str) -> bool:
    return name.endswith("/") or name.startswith(("/", ".", "~"))
