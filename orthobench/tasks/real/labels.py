"""Classes or values: what the y of a file of one's own are. Classes have the names that stand in the file."""

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import numpy as np

from orthobench.datasets.sequences import Sequences
from orthobench.datasets.words import has_fraction, is_number, otherwise, pairs_alike, shown
from orthobench.errors import DataError

Role = Literal["auto", "class", "value"]
FEW = 20  # sequences, of fewer nothing is concluded


def objective_of(stored: Sequences, target: Role, path: Path | str) -> Literal["classify", "regress"]:
    """Look whether classes or values are to be predicted; `auto` takes what the file says, or else numbers with a
    fraction for values.

    Raises:
        DataError: values are asked for, and y has words; or `auto` cannot tell: y has numbers with a fraction in most
            sequences and also words, or names or whole numbers of which most are there once, as values are.
    """
    y, words = stored.y, stored.y.dtype.kind in "US"
    if target == "value" and words:
        raise DataError(f"{path}: task.target=value needs numbers, and y has words such as {_word(stored)!r}.")
    role = stored.declared if target == "auto" else target
    if role is not None:
        return "classify" if role == "class" else "regress"
    different = len(np.unique(y))
    if words:
        names = stored.names.tolist()
        fraction = next(filter(has_fraction, names), None)
        numbers = sum(is_number(name) for name in names)
        if numbers > len(y) / 2 and (fraction is not None or (len(y) >= FEW and different > len(y) / 2)):
            number = fraction or next(filter(is_number, names))
            raise DataError(
                f"{path}: y has {numbers} numbers such as {number} in {len(y)} sequences, and words such as "
                f"{_word(stored)!r}: values must be numbers throughout, and task.target=class takes all for names."
            )
        if len(y) >= FEW and different > len(y) / 2:
            raise DataError(
                f"{path}: y has {different} different names such as {_word(stored)!r} in {len(y)} sequences: "
                "write values as plain numbers, or say task.target=class where they are names."
            )
        return "classify"
    if y.dtype.kind == "f" and not (y == np.floor(y)).all():
        return "regress"
    if len(y) >= FEW and different > len(y) / 2:
        raise DataError(
            f"{path}: y has {different} different whole numbers in {len(y)} sequences: say task.target=value "
            "where they are values to predict, or task.target=class where they are names."
        )
    return "classify"


def _word(stored: Sequences) -> str:
    """A name that is no number, where there is one."""
    names = np.unique(stored.names).tolist()
    return next((name for name in names if not is_number(name)), names[0])


def classes_of(stored: Sequences, path: Path | str) -> list[str]:
    """The names of the classes: numbers in their order, words by the alphabet.

    Raises:
        DataError: there is one class alone, or the file has parts, of which one writes a class otherwise than training.
    """
    found = [name for _, name in sorted(set(zip(stored.y.tolist(), stored.names.tolist(), strict=True)))]
    if len(found) == 1:
        raise DataError(f"{path}: y is {shown(found[0])} for every sequence; two classes are needed.")
    trained = set(stored.names[stored.parts["train"]].tolist()) if stored.parts else set()
    for part in ("val", "test"):
        told = spelled_otherwise(stored.names[stored.parts.get(part, [])].tolist(), trained)
        if told and stored.parts:
            raise DataError(f"{path}: {part} has the class {told}; write a class in one way throughout.")
    return found


def spelled_otherwise(names: Iterable[str], known: Iterable[str]) -> str:
    """Tell of a name that is among the known ones in another spelling, such as 1.0 of 1; empty where there is none."""
    known = set(known)
    for name in dict.fromkeys(names):
        other = otherwise(name, known)
        if other is not None:
            return f"{name!r}, which is {other!r} in training: write it in one way"
    return ""


def remarks(classes: list[str]) -> list[str]:
    """Look for classes whose names are nearly the same."""
    return [f"{one!r} and {other!r} are two classes, as their names differ" for one, other in pairs_alike(classes)[:1]]
