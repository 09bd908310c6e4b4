"""Names in files of one's own, such as classes: text as it stands, never read as a number or as missing."""

import re
from collections.abc import Iterable
from pathlib import Path
from unicodedata import normalize

import numpy as np

from orthobench.errors import DataError

LONGEST = 60  # characters of a name in a message
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def decoded(content: bytes, path: Path) -> tuple[str, list[str]]:
    """The text of a file in UTF-8, or else in Latin-1; of the latter a remark tells.

    Raises:
        DataError: it has a null byte, as text in UTF-16 has.
    """
    try:
        text, remarks = content.decode("utf-8-sig"), []
    except UnicodeDecodeError as error:
        text = content.decode("latin-1")
        remarks = [f"{path} is not in UTF-8 (byte {error.start + 1} is {content[error.start]:#04x}): read as Latin-1"]
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise DataError(f"{path} cannot be read as text: line {line} has a null byte; save it in UTF-8.")
    return text, remarks


def names_of(y: np.ndarray) -> np.ndarray:
    """The name of every entry: words as they stand, bytes decoded, and numbers as Python writes them."""
    if y.dtype.kind == "S":
        return np.array(text_of(y.tolist()), dtype=str)
    if y.dtype.kind == "U":
        return y
    values, which = np.unique(y, return_inverse=True)
    return np.array([str(one) for one in values])[which]


def text_of(cells: Iterable[object]) -> list[str]:
    """Cells of a table as text; bytes are in UTF-8 or, where one of them is not, all in Latin-1: two are never one."""
    listed = list(cells)
    try:
        return [one.decode("utf-8") if isinstance(one, bytes) else str(one) for one in listed]
    except UnicodeDecodeError:
        return [one.decode("latin-1") if isinstance(one, bytes) else str(one) for one in listed]


def numbers_of(names: np.ndarray) -> np.ndarray | None:
    """The numbers (float64) that all the names are; None where one is another word.

    Whole numbers, of which one is written in two ways, are words.
    """
    distinct, which = np.unique(names, return_inverse=True)
    cells = [one.strip(" ") for one in distinct.tolist()]
    if not all(map(NUMBER.fullmatch, cells)):
        return None
    values = np.array(cells, dtype=np.float64)
    whole = not any(set(".eE") & set(cell) for cell in cells)
    if not np.isfinite(values).all() or (whole and len(set(values.tolist())) < len(cells)):
        return None
    return values[which]


def is_number(name: str) -> bool:
    """Return True if a name is a number in decimal notation, such as 0.5 or 12."""
    return NUMBER.fullmatch(name.strip(" ")) is not None


def has_fraction(name: str) -> bool:
    """Return True if a name is a number with a fraction, such as 0.5."""
    return is_number(name) and not float(name).is_integer()


def alike(name: str) -> str | float:
    """Key that a name shares with those that differ only in blanks, or in how a number or letter is written."""
    plain = normalize("NFC", name).strip()
    return float(plain) if NUMBER.fullmatch(plain) else plain


def pairs_alike(names: Iterable[str]) -> list[tuple[str, str]]:
    """Different names that are alike, in pairs with the first one of their kind."""
    first: dict[str | float, str] = {}
    return [(first[alike(name)], name) for name in sorted(set(names)) if first.setdefault(alike(name), name) != name]


def otherwise(name: str, known: Iterable[str]) -> str | None:
    """The name among the known ones that is alike, where `name` itself is not known."""
    found = set(known)
    return None if name in found else next((one for one in sorted(found) if alike(one) == alike(name)), None)


def shown(name: object) -> str:
    """A name as messages show it: quoted where it could be taken for another one or for more than one word."""
    text = str(name)
    plain = text.isprintable() and text.strip() == text and text
    text = text if plain else repr(text)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
