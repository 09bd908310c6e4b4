"""Archives of arrays, as NumPy writes them from arrays and from Python lists."""

from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from orthobench.datasets import sequences
from tests.outside import Draw, kind

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
