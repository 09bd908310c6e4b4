"""The settings that are paths: as a command line and a file of a `--config-dir` write them, and as a run keeps them.

Such a file may be somebody else's, and a run of its settings reads what they name, so it names nothing outside of its
folder. Only the command line names files elsewhere. A path that is not absolute is one in the folder; the name of a
run, without a slash, is no path.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from orthobench.common import paths
from orthobench.common.paths import outside
from orthobench.config.policy import COMMAND_LINE_ALONE, walk
from orthobench.config.settings import SECTIONS
from orthobench.config.words import key, parsed, quoted, readable, value
from orthobench.errors import ConfigError

ROOTS = ("data_root", "runs_root", "results_root")
FOLDERS = (*ROOTS, "init_from")
ON_A_LINE = (*FOLDERS, "task.path")
OF_RUN = (
    "T",
    "seed",
    "variant",
    "params",
    "engine",
    "checkpoint",
    "ensemble",
    "force",
    "fork",
    "timeout",
    "cell",
    "deviations",
)
REFERENCES = (*FOLDERS, *SECTIONS, *OF_RUN)  # what ${...} refers to; any other name is that of a variable
PLAIN = re.compile(r"[A-Za-z_][\w./-]*", re.ASCII)
SPECIAL = re.compile(r"[^\w./@%+,* -]", re.ASCII)
NAMES = re.compile(r"(\w*_)?(path|file|dir|folder|root)|init_from")  # of settings that are paths
SPOKEN = re.compile(NAMES.pattern.replace("(\\w*_)?", ""))  # whatever has such a name in it
KNOWN = ("path", "init_from")  # whose meaning is known; what else is a path, and from where, only a plug-in says
RUN = re.compile(r"[\w+-]+")  # a run's name, which `init_from` may be


def given(words: Iterable[str]) -> list[str]:
    """The words of a command line with every path expanded, and quoted where Hydra's grammar needs it.

    A `$` of the path itself stays `$$`, so that words may be expanded again, as those for another process are.

    Raises:
        ConfigError: a path names a variable that is not set, or a user that is not there.
    """
    return [_given(word) for word in words]


def _given(word: str) -> str:
    """Word with its paths expanded."""
    text = word.partition("=")[2]
    if key(word) not in ON_A_LINE or not SPECIAL.search(text):
        return readable(word)
    values = _values(word, text)
    found = [paths.expanded(one, key(word), REFERENCES, "$$") for one in values]
    try:
        parsed(word)
    except ConfigError:  # a name with `=` or brackets in it, or one that begins with ~
        pass
    else:
        if found == values:
            return readable(word)
    return f"{word.partition('=')[0]}={','.join(map(quoted, found))}"


def _values(word: str, text: str) -> list[str]:
    """The paths in a word, of which a sweep has several."""
    try:
        override = parsed(word)
    except ConfigError:
        return [part.strip("'\"") for part in text.split(",")]
    found: Any = override.value()
    if override.is_choice_sweep():
        return [_text(one) for one in found.list]
    return [_text(found)] if isinstance(found, str) else []


def _text(value: Any) -> str:
    return str(getattr(value, "text", value))


def path(word: str) -> str:
    """The path in a word that has been expanded."""
    return value(word).replace("$$", "$")


def of_run(values: dict[str, Any], typed: Collection[str]) -> dict[str, Any]:
    """The settings of a run that are no group's, with `~` put in.

    Args:
        values: the settings.
        typed: the keys that words have set.

    Raises:
        ConfigError: there is no such user, or a folder has no name.
    """
    for name in ROOTS:
        if name in values and not str(values[name]).strip():
            folder = name.partition("_")[0]
            raise ConfigError(f"{name}= names no folder: give one, such as {name}={folder}, or leave it out.")
    return {name: _plain(values, name, typed, name) if name in FOLDERS else one for name, one in values.items()}


def of_task(names: Iterable[str], values: dict[str, Any], typed: Collection[str]) -> dict[str, Any]:
    """A task's settings, with the one place of every file that the settings `names` name.

    Raises:
        ConfigError: there is no such user, it is no path, or it is empty.
    """
    found = dict(values)
    for name in names:
        text = _plain(values, name, typed, f"task.{name}")
        if isinstance(text, str) and not text.strip():
            raise ConfigError(f"task.{name}= names no file: give one, such as task.{name}=data/mine.csv.")
        found[name] = paths.canonical(text, f"task.{name}") if isinstance(text, str) else text
    return found


def _plain(values: dict[str, Any], name: str, typed: Collection[str], what: str) -> Any:
    """A path without `~`, and without the sign that a `$` has in words."""
    text = values.get(name)
    if not isinstance(text, str):
        return text
    return paths.home(text.replace("$$", "$") if what in typed else text, what)


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
    given = paths.home(value, f"{source}{name}")
    plain = "$" not in value and "\0" not in value
    try:
        inside = [folder.absolute() / given for folder in folders if plain and not _leads_out(folder, given)]
        path = next((path for path in inside if path.exists()), inside[0] if inside else None)
    except (OSError, RuntimeError) as error:  # the latter for links in a circle
        raise ConfigError(
            f"{source}{name}={value} cannot be found: {error}; name a file or folder that is there."
        ) from error
    if path is None:
        told = f"which a file of --config-dir may not: give {name}= on the command line"
        raise ConfigError(f"{source}{name}={value} names what is outside of its folder, {told}.")
    return str(path) if last in KNOWN or value != given else value


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
    for name, one in items:
        here = f"{place}.{name}" if place else str(name)
        if here in typed or here in COMMAND_LINE_ALONE:
            continue
        if isinstance(one, dict | list):
            place_values(one, typed, folders, here)
        elif isinstance(one, str) and NAMES.fullmatch(str(name)):
            node[name] = placed(one, here if place else str(name), folders)


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
        raise ConfigError(f"{source}{word!r} is no path: give one path.")
    return f"{name}={quoted(placed(str(value), name, folders, source))}"


def word(key: str, value: Any) -> str:
    """Override in Hydra's grammar."""
    if key in ON_A_LINE and isinstance(value, str):
        value = value.replace("$", "$$")
    return f"{key}={_written(value)}"


def _written(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, list | tuple):
        return f"[{','.join(map(_written, value))}]"
    if isinstance(value, str):
        return value if PLAIN.fullmatch(value) and value not in ("null", "true", "false") else quoted(value)
    return repr(value)
