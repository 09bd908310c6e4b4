"""The `defaults:` of configuration files, followed before Hydra follows them: in a circle it would have no end.

Its entries are described at https://hydra.cc/docs/advanced/defaults_list: `NAME`, `GROUP: NAME`, `GROUP@PACKAGE: [NAME,
NAME]`, each perhaps `optional`; `override` chooses again and names no further file.
"""

import posixpath
from collections.abc import Mapping
from typing import Any

from orthobench.errors import ConfigError

MOST = 100  # files that one may bring along


def named(entries: Any, name: str, source: str) -> list[str]:
    """The files that a file's `defaults:` name, as `group/name`.

    Args:
        entries: the list.
        name: the file's own name, such as `model/mine`.
        source: the beginning of the sentence that refuses it.

    Raises:
        ConfigError: it is no such list, or it names a file by `${...}` or `..`.
    """
    if not isinstance(entries, list):
        raise ConfigError(f"{source}defaults must be a list, such as [base, /model: lstm].")
    found = []
    for entry in entries:
        if isinstance(entry, str):
            pairs: list[tuple[str, Any]] = [("", entry)]
        elif isinstance(entry, dict) and len(entry) == 1 and isinstance(next(iter(entry)), str):
            pairs = list(entry.items())
        else:
            raise ConfigError(f"{source}defaults: {entry!r} is neither a name nor one GROUP: NAME.")
        for words, value in pairs:
            choices = value if isinstance(value, list) else [value]
            if not all(isinstance(one, str | None) for one in choices):
                raise ConfigError(
                    f"{source}defaults: {entry!r} names no file: name a file of the group, or delete the line."
                )
            if words.startswith("override ") or value == "_self_":
                continue
            group = words.removeprefix("optional ").partition("@")[0].strip()
            found += [_path(group, one, name, source) for one in choices if one is not None]
    return found


def refuse_endless(files: Mapping[str, list[str]], source: str) -> None:
    """Refuse files whose `defaults:` name each other in a circle, or bring along more than MOST.

    Args:
        files: by name, the names in its `defaults:`; others bring none along.
        source: the beginning of the sentence that refuses them.

    Raises:
        ConfigError: there is such a file.
    """
    counts: dict[str, int] = {}
    for start in files:
        way = [(start, iter(files[start]))]
        open_files = {start: 0}  # those on the way, each with the files that it has brought along so far
        while way:
            name, rest = way[-1]
            child = next(rest, None)
            if child in open_files:
                raise ConfigError(
                    f"{source}the defaults: of {child} lead back to it, by way of {name}: delete one of the two."
                )
            if child is not None and child in files and child not in counts:
                way.append((child, iter(files[child])))
                open_files[child] = 0
            elif child is not None:
                open_files[name] += 1 + counts.get(child, 0)
            else:
                way.pop()
                counts[name] = open_files.pop(name)
                if counts[name] > MOST:
                    raise ConfigError(
                        f"{source}the defaults: of {name} bring along more than {MOST} files: name fewer."
                    )
                if way:
                    open_files[way[-1][0]] += 1 + counts[name]


def _path(group: str, value: str, name: str, source: str) -> str:
    """The file that an entry names, relative to the group of the file that it is in, or from the top after a `/`."""
    path = posixpath.join("/", posixpath.dirname(name), group, value.partition("@")[0].removesuffix(".yaml"))
    if "${" in path or ".." in path.split("/"):
        raise ConfigError(f"{source}defaults: {value!r} must name a file of this folder or of orthobench.")
    return path.lstrip("/")
