"""Paths in the files of a `--config-dir`, which name nothing outside of that folder.

Such a file may be somebody else's, and a run of its settings reads what they name. Only the command line names files
elsewhere. A path that is not absolute is one in the folder; the name of a run, without a slash, is no path.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from orthobench.config.policy import COMMAND_LINE_ALONE, walk
from orthobench.config.words import key, parsed, quoted
from orthobench.errors import ConfigError

NAMES = re.compile(r"(\w*_)?(path|file|dir|folder|root)|init_from")  # of settings that are paths
SPOKEN = re.compile(NAMES.pattern.replace("(\\w*_)?", ""))  # whatever has such a name in it
KNOWN = ("path", "init_from")  # whose meaning is known; what else is a path, and from where, only a plug-in says
RUN = re.compile(r"[\w+-]+")  # a run's name, which `init_from` may be


def outside(path: Path, folder: Path) -> bool:
    """Return True if a path, with all links in it, leads out of a folder."""
    return not path.resolve().is_relative_to(folder.resolve())


def placed(value: str, name: str, folders: Sequence[Path], source: str = "") -> str:
    """The path that a file of a configuration folder names, which is in one of the folders; whole where it is KNOWN.

    Args:
        value: the path.
        name: the setting.
        folders: those of `--config-dir` that it may be in; the first has what is in none.
        source: the beginning of the sentence that refuses it.

    Raises:
        ConfigError: it is outside of them, it would be made of something else, or a link beside it leads outside.
    """
    last = name.rpartition(".")[2]
    if not value or (last == "init_from" and RUN.fullmatch(value)):
        return value
    plain = not value.startswith("~") and "$" not in value and "\0" not in value
    try:
        inside = [folder.absolute() / value for folder in folders if plain and not _leads_out(folder, value)]
        path = next((path for path in inside if path.exists()), inside[0] if inside else None)
    except (OSError, RuntimeError) as error:  # the latter for links in a circle
        raise ConfigError(f"{source}{name}={value} cannot be found: {error}.") from error
    if path is None:
        told = f"which a file of --config-dir may not: give {name}= on the command line"
        raise ConfigError(f"{source}{name}={value} names what is outside of its folder, {told}.")
    return str(path) if last in KNOWN else value


def placed_words(words: Iterable[str], folders: Sequence[Path], source: str) -> tuple[str, ...]:
    """Overrides of a table, with the paths in them as `placed` has them.

    Raises:
        ConfigError: see `placed`, or an override has another kind of value in the place of a path.
    """
    return tuple(_placed_word(word, folders, source) if SPOKEN.search(word) else word for word in words)


def place_values(node: Any, typed: Collection[str], folders: Sequence[Path], place: str = "") -> None:
    """Replace the paths in composed settings that no override has set, see `placed`.

    Raises:
        ConfigError: see `placed`.
    """
    items = list(node.items() if isinstance(node, dict) else enumerate(node))
    for name, value in items:
        here = f"{place}.{name}" if place else str(name)
        if here in typed or here in COMMAND_LINE_ALONE:
            continue
        if isinstance(value, dict | list):
            place_values(value, typed, folders, here)
        elif isinstance(value, str) and NAMES.fullmatch(str(name)):
            node[name] = placed(value, here if place else str(name), folders)


def _leads_out(folder: Path, value: str) -> bool:
    """Return True if a path in a folder, or a link beside it that may be read with it, leads out of the folder."""
    path = folder / value
    if outside(path, folder):
        return True
    beside = path.parent.iterdir() if path.parent.is_dir() else ()
    return any(outside(one, folder) for one in beside if one.is_symlink())


def _placed_word(word: str, folders: Sequence[Path], source: str) -> str:
    override, name = parsed(word), key(word)
    value: Any = override.value()
    if not NAMES.fullmatch(name.rpartition(".")[2]):
        inner = next((place for place, own, _ in walk(value) if NAMES.fullmatch(own)), None)
        if inner is not None:
            raise ConfigError(f"{source}{word!r} sets a path within other values: write {name}.{inner}=... by itself.")
        return word
    if value is None:
        return word
    if override.is_sweep_override() or not isinstance(value, str):
        raise ConfigError(f"{source}{word!r} is no path.")
    return f"{name}={quoted(placed(str(value), name, folders, source))}"
