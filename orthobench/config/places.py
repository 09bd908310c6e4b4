"""The settings that are paths: as a command line writes them, and as a run keeps them."""

import re
from collections.abc import Collection, Iterable
from typing import Any

from orthobench import paths
from orthobench.config.settings import SECTIONS
from orthobench.config.words import key, parsed, quoted, value
from orthobench.errors import ConfigError

ROOTS = ("data_root", "runs_root", "results_root")
FOLDERS = (*ROOTS, "init_from")
ON_A_LINE = (*FOLDERS, "task.path")
OF_RUN = ("T", "seed", "variant", "params", "engine", "ensemble", "force", "fork", "timeout", "cell", "deviations")
REFERENCES = (*FOLDERS, *SECTIONS, *OF_RUN)  # what ${...} refers to; any other name is that of a variable
SPECIAL = re.compile(r"[^\w./@%+,* -]")


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
        return word
    values = _values(word, text)
    found = [paths.expanded(one, key(word), REFERENCES, "$$") for one in values]
    try:
        parsed(word)
    except ConfigError:  # a name with `=` or brackets in it, or one that begins with ~
        pass
    else:
        if found == values:
            return word
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
        ConfigError: there is no such user.
    """
    return {name: _plain(values, name, typed, name) if name in FOLDERS else one for name, one in values.items()}


def of_task(names: Iterable[str], values: dict[str, Any], typed: Collection[str]) -> dict[str, Any]:
    """A task's settings, with the one place of every file that the settings `names` name.

    Raises:
        ConfigError: there is no such user, or it is no path.
    """
    found = dict(values)
    for name in names:
        text = _plain(values, name, typed, f"task.{name}")
        found[name] = paths.place(text, f"task.{name}") if isinstance(text, str) and text.strip() else text
    return found


def _plain(values: dict[str, Any], name: str, typed: Collection[str], what: str) -> Any:
    """A path without `~`, and without the sign that a `$` has in words."""
    text = values.get(name)
    if not isinstance(text, str):
        return text
    return paths.home(text.replace("$$", "$") if what in typed else text, what)
