"""Files in which a change is noticed: a record and a line of records hold their digest, config.yaml its run's twice."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orthobench.recording.files import finite, read_json, write_json
from orthobench.recording.shape import RECORD, is_record

LINE = 1000  # characters of the first line of config.yaml, at most
FINAL = ("done", "diverged")


def seal(content: dict[str, Any]) -> dict[str, Any]:
    """The content with null for every number that is not finite, and with its own digest under the key `sha256`."""
    plain = finite({key: value for key, value in content.items() if key != "sha256"})
    return {**plain, "sha256": _digest(plain)}


def _digest(plain: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def seal_of_line(cells: Mapping[str, str]) -> str:
    """The first 16 digits of the digest of a line of a CSV file: of its cells that are not empty, by column."""
    return _digest({column: cell for column, cell in cells.items() if cell})[:16]


def write_sealed(path: Path, content: dict[str, Any]) -> dict[str, Any]:
    """Write the content with its digest; returns both.

    Raises:
        StorageError: the folder or the disk refuses.
    """
    sealed = seal(content)
    write_json(path, sealed)
    return sealed


def read_sealed(path: Path) -> dict[str, Any] | None:
    """Read what `write_sealed` wrote; None if there is no file, if it was changed, or if it is no record."""
    found = read_json(path)
    if found is not None and path.name == RECORD and not is_record(found):
        return None
    if found is None or (found.get("schema") == 1 and "sha256" not in found):  # the first form had no digest
        return found
    try:
        own = _digest({key: value for key, value in found.items() if key != "sha256"})
        return found if found.get("sha256") == own else None
    except (ValueError, RecursionError):
        return None


def final(path: Path) -> dict[str, Any] | None:
    """The record in a file if it is final, so that no later attempt replaces it; else None."""
    found = read_sealed(path)
    return found if found is not None and found.get("status") in FINAL else None


def owned(text: str, digest: str) -> str:
    """A YAML text after a comment line that holds the digest of its run twice."""
    return f"# {digest} {digest}\n{text}"


def owner(path: Path) -> str | None:
    """The digest that `owned` wrote; None when there is no file, or its two copies differ because it is damaged."""
    try:
        if not path.is_file():  # a pipe would be waited for
            return None
        with path.open(errors="replace") as file:
            first = file.readline(LINE).split()
    except OSError:
        return None
    return first[1] if len(first) == 3 and first[1] == first[2] else None
