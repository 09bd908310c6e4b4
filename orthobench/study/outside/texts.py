"""Texts in which a path, an address or the name of a machine stands."""

import platform
import re
from collections.abc import Iterator
from typing import Any

LONGEST = 400  # characters of a text
PATH = re.compile(r"""(?:^|[\s'"=(:,\[])(?:/|~|\.\.?/|[A-Za-z]:[\\/]|\\\\)[^\s/]|\w+://|\w@\w|\b\d+\.\d+\.\d+\.\d+\b""")
SHORTEST = 4  # characters of a machine's name that is looked for


def telling(content: Any) -> tuple[str, str] | None:
    """The first text that tells a path, an address, or this machine's name, with its key; else None."""
    name = platform.node()
    own = re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])" if len(name) >= SHORTEST else r"(?!)")
    for key, text in texts(content):
        if len(text) > LONGEST or PATH.search(text) or own.search(text):
            return key, text[:60]
    return None


def texts(content: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Every text in a value of JSON, the names of its parts among them, each with the key under which it stands."""
    if isinstance(content, str):
        yield key, content
    elif isinstance(content, dict):
        for name, value in content.items():
            yield f"a key of {key}", name
            yield from texts(value, f"{key}.{name}".strip("."))
    elif isinstance(content, list):
        for value in content:
            yield from texts(value, key)
