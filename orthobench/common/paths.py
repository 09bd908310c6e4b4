"""Paths as people write them, `~/runs` and `$SCRATCH/runs`, and the place that a path means."""

import os
import re
from pathlib import Path

from orthobench.errors import ConfigError

VARIABLE = re.compile(r"\$(?:(\$)|([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})")
PAIRED, TRAIN, TEST = "_TRAIN", "_TRAIN.ts", "_TEST.ts"  # ends of names; the test part lies beside the other


def expanded(text: str, what: str, but: tuple[str, ...] = (), dollar: str = "$") -> str:
    """A path with `~`, `~user`, `$NAME` and `${NAME}` put in; `$$` stands for one `$`.

    Args:
        text: the path as it was written.
        what: the setting or argument that it is of, for messages.
        but: names in braces that are left as they are.
        dollar: how a `$` of the path itself is written in the result; `$$` for one that is expanded again.

    Raises:
        ConfigError: there is no such user, a variable is not set or empty, or the result is to be expanded again and
            would then mean something else.
    """

    def value(found: re.Match[str]) -> str:
        escaped, plain, braced = found.groups()
        literal = "$" + found.string[found.end() :][:1] if escaped else os.environ.get(plain or braced, "")
        if dollar != "$" and "${" in literal:
            raise ConfigError(
                f"{what}={text}: a path with a $ in front of a brace cannot be given here, where that names a setting; "
                "rename the file or its folder."
            )
        if escaped or braced in but:
            return dollar if escaped else found[0]
        given = os.environ.get(plain or braced)
        if not given:
            raise ConfigError(
                f"{what}={text}: the environment variable {plain or braced} is not set, or empty; set it, or write $$ "
                "where the name of a file has a $."
            )
        return given.replace("$", dollar)

    return VARIABLE.sub(value, home(text, what))


def home(text: str, what: str) -> str:
    """A path with `~` or `~user` at its beginning put in.

    Raises:
        ConfigError: there is no such user.
    """
    if not text.startswith("~"):
        return text
    found = os.path.expanduser(text)  # noqa: PTH111  (a Path would lose `./`)
    if found.startswith("~"):
        user = text[1:].partition("/")[0]
        raise ConfigError(f"{what}={text}: there is no user {user} here; write ./{text} for a file of this name.")
    return found


def folder(text: str | Path, what: str) -> Path:
    """The path of an argument, expanded.

    Raises:
        ConfigError: see `expanded`.
    """
    return Path(expanded(str(text), what))


def variable(name: str) -> str | None:
    """The path in an environment variable, expanded; None where it is not set, or empty.

    Raises:
        ConfigError: see `expanded`.
    """
    text = os.environ.get(name)
    return expanded(text, name) if text else None


def absolute(text: str) -> str:
    """A path from the root, whose links keep their names.

    Raises:
        ConfigError: it is no path.
    """
    if "\0" in text:
        raise ConfigError(f"{text!r} is no path: it has a null byte, which must go.")
    return os.path.abspath(text)  # noqa: PTH100


def canonical(text: str, what: str) -> str:
    """The whole path of a file, by which the same file has one name from any folder.

    Links are followed, but for a last one whose name says more than that of the file: another ending, by which it is
    known how the file is to be read, or that it is one of a pair.

    Raises:
        ConfigError: it is no path.
    """
    if "\0" in text:
        raise ConfigError(f"{what}={text!r} is no path: it has a null byte, which must go.")
    path, real = Path(text), Path(os.path.realpath(text))
    if real.suffix == path.suffix and not path.stem.endswith(PAIRED):
        return str(real)
    return str(Path(os.path.realpath(path.parent)) / path.name)


def twin_of(path: Path) -> Path | None:
    """File of the test part beside `NAME_TRAIN.ts`; None for a file of any other name."""
    name = path.name.removesuffix(TRAIN)
    return path.with_name(name + TEST) if name != path.name else None


def outside(path: Path, folder: Path) -> bool:
    """Return True if a path, with all links in it, leads out of a folder."""
    return not path.resolve().is_relative_to(folder.resolve())
