"""Small data sets in MNIST's genuine format: four gzipped idx files whose digests stand in for the published ones."""

import gzip
import hashlib
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from orthobench.datasets import mnist


def idx(array: np.ndarray) -> bytes:
    """An idx file of bytes."""
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def install(root: Path, monkeypatch: pytest.MonkeyPatch, train: int, test: int) -> dict[str, np.ndarray]:
    """Write `root/mnist` with so many random images, and make it the published one; the arrays by file name."""
    rng = np.random.default_rng(7)
    arrays = {}
    for file, items in zip(mnist.FILES, (train, train, test, test), strict=True):
        shape = (items, 28, 28) if "images" in file.name else (items,)
        arrays[file.name] = rng.integers(0, 256 if "images" in file.name else 10, size=shape, dtype=np.uint8)
    (root / "mnist").mkdir(parents=True)
    for name, array in arrays.items():
        (root / "mnist" / name).write_bytes(gzip.compress(idx(array), compresslevel=1))
    accept(root, monkeypatch)
    return arrays


def accept(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the files as they are for the published ones."""
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (root / "mnist").iterdir()}
    files = tuple(replace(file, sha256=digests[file.name]) for file in mnist.FILES)
    monkeypatch.setattr(mnist, "FILES", files)
    mnist.load.cache_clear()
