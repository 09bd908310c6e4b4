"""Labelled sequences from a file of one's own: NumPy's .npz, a table in long form, or the .ts files of the UEA archive.

Shapes: N sequences, T steps of the longest one, I features.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from orthobench.datasets.files import FileState, state
from orthobench.datasets.npz import OWN, read_npy
from orthobench.datasets.zips import OWN_CAP, open_zip
from orthobench.errors import DataError

PARTS = ("train", "val", "test")
ENDINGS = (".npz", ".csv", ".parquet", ".ts")


@dataclass(frozen=True)
class Sequences:
    """Sequences of unequal length are padded with zeros at their end.

    Attributes:
        x: (N, T, I), float32, or float64 where the file has more digits: they count until x is normalised.
        y: (N,), classes of any type, or float64 values.
        lengths: (N,), int64.
        parts: indices of the sequences of `train`, `val` and `test`, as far as the file says.
        values: whether the file says that y are values to predict, which may be whole numbers.
        groups: the group of every sequence as text, (N,); null where none are asked for, or the file has none.
    """

    x: np.ndarray
    y: np.ndarray
    lengths: np.ndarray
    parts: dict[str, np.ndarray] = field(default_factory=dict)
    values: bool = False
    groups: np.ndarray | None = None


def load(path: Path, group: str | None = None) -> Sequences:
    """The sequences of a file; `NAME_TRAIN.ts` has those of `NAME_TEST.ts` beside it as its test part.

    Args:
        path: the file.
        group: the column or the array that says to which group a sequence belongs.

    Raises:
        DataError: the file is missing, of another kind, or malformed.
    """
    files = files_of(path)
    missing = next((file for file in files if not file.is_file()), None)
    if missing is not None:
        raise DataError(f"{missing} is not there, or is no file; task.path= names a file of sequences.")
    return _load(files, tuple(map(state, files)), group)


def files_of(path: Path) -> tuple[Path, ...]:
    """The files that `load` reads."""
    twin = path.with_name(path.name.replace("_TRAIN.ts", "_TEST.ts"))
    return (path, twin) if twin != path else (path,)


@lru_cache(maxsize=2)
def _load(files: tuple[Path, ...], changed: tuple[FileState, ...], group: str | None) -> Sequences:
    from orthobench.datasets import long_table, uea

    path, kind = files[0], files[0].suffix.lower()
    if kind == ".npz":
        x, y, lengths, parts, groups = _npz(path, group)
        return _grouped(checked(x, y, lengths, parts, path), groups, path)
    if kind == ".ts":
        found = checked(*uea.read(files), path)
        return replace(found, values=found.y.dtype.kind == "f")  # classes are words there
    if kind in ENDINGS:
        x, y, lengths, parts, groups = long_table.read(path, group)
        return _grouped(checked(x, y, lengths, parts, path), groups, path)
    raise DataError(f"{path} ends in {kind or 'nothing'}: {', '.join(ENDINGS)} can be read.")


def _grouped(found: Sequences, groups: np.ndarray | None, path: Path) -> Sequences:
    """The sequences with their groups, as text.

    Raises:
        DataError: there is not one group for each.
    """
    if groups is None:
        return found
    if groups.shape != found.y.shape or groups.dtype.kind not in "fiubUS":
        raise DataError(f"{path}: the groups are {groups.shape} of {groups.dtype}; one for each of {len(found.y)} "
                        "sequences is needed.")  # fmt: skip
    wrong = groups.dtype.kind == "f" and np.flatnonzero(~np.isfinite(groups))
    if wrong is not False and len(wrong):
        raise DataError(f"{path}: the group of sequence {int(wrong[0])} is not a finite number.")
    if groups.dtype.kind == "S":
        groups = np.char.decode(groups, "utf-8", "replace")
    return replace(found, groups=groups.astype(str))


def _npz(
    path: Path, group: str | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, dict[str, np.ndarray], np.ndarray | None]:
    known = ("x", "y", "lengths", *PARTS, *([group] if group else []))
    try:
        with open_zip(path, path) as archive:
            names = [info.filename.removesuffix(".npy") for info in archive.infolist()]
            arrays = {name: read_npy(archive, name, path, OWN, OWN_CAP) for name in names if name in known}
    except DataError as error:
        raise DataError(f"{path} is no .npz archive of plain arrays: {error}") from error
    unknown = sorted(set(names) - set(known))
    if unknown or not {"x", "y"} <= set(arrays):
        allowed = f"x and y are needed, {', '.join(known[2:])} may be there"
        raise DataError(f"{path} has the arrays {', '.join(sorted(names))}: {allowed}.")
    parts = {part: arrays[part] for part in PARTS if part in arrays}
    return arrays["x"], arrays["y"], arrays.get("lengths"), parts, arrays.get(group or "")


def checked(
    x: np.ndarray, y: np.ndarray, lengths: np.ndarray | None, parts: Mapping[str, np.ndarray], path: Path
) -> Sequences:
    """Arrays as `Sequences`.

    Raises:
        DataError: shapes that do not belong together, values that are not finite, or wrong indices.
    """
    if x.ndim == 2:
        x = x[:, :, None]
    if x.ndim != 3 or 0 in x.shape or x.dtype.kind not in "fiub":
        raise DataError(f"{path}: x is {x.shape} of {x.dtype}; numbers of shape (N, T, I) or (N, T) are needed.")
    N, T, _ = x.shape
    if y.shape != (N,) or y.dtype.kind not in "fiubUS":
        raise DataError(f"{path}: y is {y.shape} of {y.dtype}; one class or value for each of {N} sequences is needed.")
    lengths = np.full(N, T) if lengths is None else lengths
    if lengths.shape != (N,) or lengths.dtype.kind not in "iu" or lengths.min() < 1 or lengths.max() > T:
        raise DataError(f"{path}: lengths must be {N} whole numbers from 1 to {T}.")
    lengths = lengths.astype(np.int64)
    beyond = np.arange(T)[None, :] >= lengths[:, None]
    x = np.where(beyond[:, :, None], 0, x).astype(np.result_type(x.dtype, np.float32))
    with np.errstate(over="ignore"):
        wrong = np.argwhere(~np.isfinite(x.astype(np.float32)))
    if len(wrong):
        n, t, i = wrong[0].tolist()
        raise DataError(f"{path}: sequence {n}, step {t}, feature {i} is no finite number in float32.")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise DataError(f"{path}: y of sequence {int(np.flatnonzero(~np.isfinite(y))[0])} is not a finite number.")
    return Sequences(x, y, lengths, _parts(parts, N, path))


def _parts(parts: Mapping[str, np.ndarray], N: int, path: Path) -> dict[str, np.ndarray]:
    seen = np.zeros(N, dtype=np.int64)
    for part, chosen in parts.items():
        if (
            chosen.ndim != 1
            or chosen.dtype.kind not in "iu"
            or not len(chosen)
            or chosen.min() < 0
            or chosen.max() >= N
        ):
            raise DataError(f"{path}: {part} must be a list of indices from 0 to {N - 1}.")
        np.add.at(seen, chosen, 1)
    if (seen > 1).any():
        raise DataError(f"{path}: sequence {int(seen.argmax())} is in more than one part, or twice in one.")
    if parts and "train" not in parts:
        raise DataError(f"{path}: the parts are {', '.join(parts)}, without train.")
    return {part: chosen.astype(np.int64) for part, chosen in parts.items()}


def padded(sequences: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Sequences (T_n, I) as (N, T, I) with zeros at their ends, and their lengths."""
    lengths = np.array([len(one) for one in sequences], dtype=np.int64)
    x = np.zeros((len(sequences), int(lengths.max()), sequences[0].shape[1]))
    for row, one in zip(x, sequences, strict=True):
        row[: len(one)] = one
    return x, lengths
