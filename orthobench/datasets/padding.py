"""Sequences of unequal length in one array, and the content of a file of them before it is checked."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

PARTS = ("train", "val", "test")


@dataclass(frozen=True)
class Content:
    """Content of a file, before it is checked; see `sequences.Sequences`."""

    x: np.ndarray
    y: np.ndarray
    lengths: np.ndarray | None = None
    parts: Mapping[str, np.ndarray] = field(default_factory=dict)
    features: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    groups: np.ndarray | None = None


def padded(sequences: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Sequences (T_n, I) as (N, T, I) with zeros at their ends, and their lengths."""
    lengths = np.array([len(one) for one in sequences], dtype=np.int64)
    x = np.zeros((len(sequences), int(lengths.max()), sequences[0].shape[1]))
    for row, one in zip(x, sequences, strict=True):
        row[: len(one)] = one
    return x, lengths
