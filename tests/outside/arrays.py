"""Archives of arrays, as NumPy writes them from arrays and from Python lists."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from orthobench.datasets import sequences
from orthobench.tasks.real.series import Series
from tests.outside import Draw, accepted, kind
from tests.outside.words import NAMES

NUMBERS = ("<f4", "<f8", ">f8", "<f2", "<i1", "<i4", "<i8", "<u2", "?", "<c8", "S3", "U3")


@kind
def npz(draw: Draw, folder: Path) -> None:
    """Arrays of many dtypes and shapes: what is read are the numbers that were written."""
    N, T, I = draw(st.integers(1, 6)), draw(st.integers(1, 4)), draw(st.integers(1, 3))
    dtype = draw.sometimes(*NUMBERS)
    x = np.random.default_rng(draw(st.integers(0, 9))).integers(0, 9, size=(N, T, I)).astype(dtype)
    x = draw.sometimes(x, x[..., 0], x[None], x[:0], np.asfortranarray(x))
    arrays: dict[str, Any] = {"x": x, "y": np.arange(N) % 2}
    if draw(st.booleans()):
        arrays["lengths"] = np.array(draw(st.lists(st.integers(-1 if draw.sometimes(False, True) else 1, T),
                                                   min_size=N, max_size=N)))  # fmt: skip
    if draw(st.booleans()):
        count = draw(st.integers(0, N))
        arrays |= {"train": np.arange(count), draw.one("test", "val"): np.arange(count, N)}
    np.savez(folder / "my.npz", **arrays)
    found = sequences.load(folder / "my.npz")
    expected = x[:, :, None] if x.ndim == 2 else x
    lengths = arrays.get("lengths", np.full(N, T))
    inside = np.arange(expected.shape[1])[None, :] < lengths[:, None]
    np.testing.assert_array_equal(found.x[inside], expected[inside].astype(float))
    assert not found.x[~inside].any()
    assert found.lengths.tolist() == lengths.tolist()
    assert {part: chosen.tolist() for part, chosen in found.parts.items()} == {
        part: arrays[part].tolist() for part in ("train", "val", "test") if part in arrays
    }


CELLS = st.one_of(NAMES, NAMES.map(str.encode), st.binary(max_size=4), st.integers(-9, 9), st.floats(), st.booleans())


@kind
def python_arrays(draw: Draw, folder: Path) -> None:
    """Python lists of words, bytes and numbers as classes: their names are the text of what NumPy makes of them."""
    one = draw.one(NAMES, NAMES.map(str.encode), st.integers(0, 3), st.booleans(), st.floats(), st.none(), CELLS)
    y = draw(st.lists(one, min_size=2, max_size=6))
    try:
        array = np.asarray(y)
    except (UnicodeDecodeError, OverflowError):
        return  # NumPy cannot write it
    x = draw.sometimes([[[1.0], [2]]] * len(y), [[1, 2]] * len(y), [[True]] * len(y), [["1"]] * len(y))
    np.savez(folder / "my.npz", x=x, y=array, allow_pickle=True)
    names = _names(array.tolist())
    wrong = (
        array.dtype.kind not in "fiubUS" or (array.dtype.kind == "f" and not np.isfinite(array).all()) or "" in names
    )
    if wrong or x[0] == ["1"]:
        sequences.load(folder / "my.npz")
        raise AssertionError("read in spite of what is wrong")
    with accepted():
        found = sequences.load(folder / "my.npz")
    assert [_plain(name) for name in found.names.tolist()] == [_plain(name) for name in names]
    if len(set(names)) > 1:
        assert sorted(map(_plain, Series(path=str(folder / "my.npz"), target="class").classes)) == sorted(
            {_plain(name) for name in names}
        )


def _names(values: list[Any]) -> list[str]:
    for encoding in ("utf-8", "latin-1"):
        with suppress(UnicodeDecodeError):
            return [value.decode(encoding) if isinstance(value, bytes) else str(value) for value in values]
    raise AssertionError("Latin-1 has every byte")


def _plain(name: str) -> str:
    return "0.0" if name == "-0.0" else name
