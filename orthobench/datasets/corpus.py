"""A text of one's own as three parts of one vocabulary."""

from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import Literal

from orthobench.datasets import files, ptb
from orthobench.datasets.vocabulary import plain
from orthobench.datasets.zips import OWN_CAP, read_file
from orthobench.errors import DataError

By = Literal["characters", "words"]
UNKNOWN = "<unk>"
END = {"characters": "\n", "words": "<eos>"}


def load(
    path: Path, by: By, val_share: float, test_share: float, min_count: int, known: tuple[str, ...] | None = None
) -> ptb.Corpus:
    """The text's beginning for training, then the parts for validation and test, as ids.

    Args:
        path: a file in UTF-8.
        by: what a token is; every line end is one too.
        val_share: share of the tokens for validation.
        test_share: share of the tokens, the last ones, for the test; 1 for a text that is read for the test alone.
        min_count: tokens that are rarer in the training part become `<unk>`, as do those that it lacks.
        known: the vocabulary, by id; that of the training part by default.

    Raises:
        DataError: the file is missing, is no text in UTF-8, or is too short to be divided.
    """
    try:
        changed = files.state(path)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}; task.path= must name a text file.") from error
    return _load(path, by, val_share, test_share, min_count, known, changed)


@lru_cache(maxsize=2)
def _load(
    path: Path,
    by: By,
    val_share: float,
    test_share: float,
    min_count: int,
    known: tuple[str, ...] | None,
    changed: files.FileState,
) -> ptb.Corpus:
    found = tokens(_text(path), by)
    val, test = round(len(found) * (1 - val_share - test_share)), round(len(found) * (1 - test_share))
    parts = found[:val], found[val:test], found[test:]
    if min(map(len, parts if test_share < 1 else parts[2:])) < 2:
        raise DataError(
            f"{path} is too short: {len(found)} {by} make parts of {', '.join(str(len(p)) for p in parts)}"
            "; use a longer text, or larger shares."
        )
    if known is None:
        counts = Counter({token: n for token, n in Counter(parts[0]).items() if n >= min_count and token != UNKNOWN})
        if not counts:
            raise DataError(f"{path}: none of the {by} occurs task.min_count={min_count} times in training; lower it.")
        known = *plain(counts), UNKNOWN
    ids = {token: number for number, token in enumerate(known)}
    seen = ([token if token in ids else UNKNOWN for token in part] for part in parts)
    return ptb.Corpus(*(ptb.encode(part, ids, path) for part in seen), tokens=known)


def tokens(text: str, by: By) -> list[str]:
    """The tokens of a text."""
    if by == "characters":
        return list(text)
    *whole, last = text.split("\n")
    return [token for line in whole for token in (*line.split(), END[by])] + last.split()


def lines(path: Path, by: By, start: int, end: int) -> list[str]:
    """The lines of a text between two of its tokens.

    Raises:
        DataError: see `load`.
    """
    found, line_end = tokens(_text(path), by)[start:end], END[by]
    glue = "" if by == "characters" else " "
    return glue.join("\n" if token == line_end else token for token in found).split("\n")


def _text(path: Path) -> str:
    try:
        text = read_file(path, OWN_CAP).decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} is no text in UTF-8: byte {error.start + 1} is {error.object[error.start]:#04x}; save it in UTF-8."
        ) from error
    if "\0" in text:
        raise DataError(
            f"{path} is no text: line {text.count(chr(10), 0, text.index(chr(0))) + 1} has a null byte"
            "; save it in UTF-8."
        )
    return text
