"""Labelled sequences from a file of one's own: NumPy's .npz, a table in long form, or the .ts files of the UEA archive.

Shapes: N sequences, T steps of the longest one, I features.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np

from orthobench.common.paths import TRAIN, twin_of
from orthobench.datasets import long_table, uea
from orthobench.datasets.files import FileState, state
from orthobench.datasets.npz import OWN, read_npy
from orthobench.datasets.padding import PARTS, Content
from orthobench.datasets.words import names_of, numbers_of, pairs_alike, shown
from orthobench.datasets.zips import OWN_CAP, open_zip
from orthobench.errors import ConfigError, DataError

ENDINGS = (".npz", ".csv", ".parquet", ".ts")


@dataclass(frozen=True)
class Sequences:
    """Sequences of unequal length are padded with zeros at their end.

    Attributes:
        x: (N, T, I), float32, or float64 where the file has more digits: they count until x is normalised. NaN stands
            for an observation that is missing.
        y: (N,), classes of any type, or float64 values.
        names: (N,), y as text, as it stands in the file.
        lengths: (N,), int64.
        parts: indices of the sequences of `train`, `val` and `test`, as far as the file says.
        declared: what the file says that y are: names of a `class`, or a `value` to predict; None where it does not.
        features: their names, as far as the file says.
        remarks: what was noticed about the file, a sentence each.
        groups: (N,), the group of every sequence as text; None where none are asked for, or the file has none.
    """

    x: np.ndarray
    y: np.ndarray
    names: np.ndarray
    lengths: np.ndarray
    parts: dict[str, np.ndarray] = field(default_factory=dict)
    declared: Literal["class", "value"] | None = None
    features: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    groups: np.ndarray | None = None

    def feature(self, place: int) -> str:
        """A feature as messages name it: by the file's name for it, or else by its number."""
        return shown(self.features[place]) if self.features else str(place)


def load(path: Path, missing: bool = False, group: str | None = None) -> Sequences:
    """The sequences of a file; `NAME_TRAIN.ts` has those of `NAME_TEST.ts` beside it as its test part.

    Args:
        path: the file.
        missing: whether observations may be missing; they are NaN then.
        group: the column or the array that says to which group a sequence belongs.

    Raises:
        DataError: the file is missing, of another kind, or malformed.
    """
    files = files_of(path)
    if path.suffix.lower() not in ENDINGS:
        raise DataError(f"{path} ends in {path.suffix or 'nothing'}: it must be one of {', '.join(ENDINGS)}.")
    if not path.is_file():
        raise DataError(f"{path} is not there, or is no file; task.path= must name a file of sequences.")
    if not files[-1].is_file():
        twin, alone = files[-1].name, f"{path.name.removesuffix(TRAIN)}.ts"
        raise DataError(f"{path} needs {twin} beside it; or rename it to {alone}, and the test part is drawn.")
    return _load(files, tuple(map(state, files)), missing, group)


def with_features_of(found: Sequences, known: Sequences, path: str, first: str) -> Sequences:
    """Sequences whose features are in the order of those that a model was trained on, by their names.

    Raises:
        ConfigError: they have other names.
    """
    if not found.features or not known.features or found.features == known.features:
        return found
    lacks = [name for name in known.features if name not in found.features]
    if lacks or len(found.features) > len(known.features):
        odd = [name for name in found.features if name not in known.features]
        what = f"lacks the feature {shown(lacks[0])}" if lacks else f"has the feature {shown(odd[0])} more"
        raise ConfigError(f"{path} {what}, by the names of {first}: a model needs the features that it was trained on.")
    order = [found.features.index(name) for name in known.features]
    return replace(found, x=found.x[:, :, order], features=known.features)


def files_of(path: Path) -> tuple[Path, ...]:
    """The files that `load` reads."""
    twin = twin_of(path)
    return (path,) if twin is None else (path, twin)


@lru_cache(maxsize=2)
def _load(files: tuple[Path, ...], changed: tuple[FileState, ...], missing: bool, group: str | None) -> Sequences:
    path, kind = files[0], files[0].suffix.lower()
    if kind == ".npz":
        return checked(_npz(path, group), path, missing)
    if kind == ".ts":
        found = checked(uea.read(files), path, missing)
        return replace(found, declared="value" if found.y.dtype.kind == "f" else "class")  # classes are words there
    found = checked(long_table.read(path, missing, group), path, missing)
    numbers = numbers_of(found.names) if kind == ".csv" else None  # whose cells are text
    return found if numbers is None else replace(found, y=numbers)


def _npz(path: Path, group: str | None) -> Content:
    known = ("x", "y", "lengths", *PARTS, *([] if group is None else [group]))
    try:
        with open_zip(path, path) as archive:
            names = [info.filename.removesuffix(".npy") for info in archive.infolist()]
            arrays = {name: read_npy(archive, name, path, OWN, OWN_CAP) for name in names if name in known}
    except DataError as error:
        raise DataError(f"{path} is no .npz archive of plain arrays, so save it by numpy.savez: {error}") from error
    unknown = sorted(set(names) - set(known))
    if unknown or not {"x", "y"} <= set(arrays):
        allowed = f"x and y are needed, {', '.join(known[2:])} may be there"
        raise DataError(f"{path} has the arrays {', '.join(sorted(names))}: {allowed}.")
    parts = {part: arrays[part] for part in PARTS if part in arrays}
    return Content(
        arrays["x"], arrays["y"], arrays.get("lengths"), parts, groups=None if group is None else arrays.get(group)
    )


def checked(given: Content, path: Path, missing: bool = False) -> Sequences:
    """Content as `Sequences`; with `missing`, x may be NaN.

    Raises:
        DataError: shapes that do not belong together, values that are not finite, empty names, or wrong indices.
    """
    x, y, lengths = given.x, given.y, given.lengths
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
    _refuse_not_finite(x, missing, given.features, path)
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise DataError(
            f"{path}: y of sequence {int(np.flatnonzero(~np.isfinite(y))[0])} is not a finite number"
            "; correct it, or leave the sequence out."
        )
    names = names_of(y)
    if (names == "").any():
        raise DataError(
            f"{path}: y of sequence {int(np.flatnonzero(names == '')[0])} is empty; every class needs a name."
        )
    y = names if y.dtype.kind == "S" else y
    groups, alike = _grouped(given.groups, N, path)
    parts, remarks = _parts(given.parts, N, path), (*given.remarks, *alike)
    return Sequences(x, y, names, lengths, parts, None, given.features, remarks, groups)


def _grouped(given: np.ndarray | None, N: int, path: Path) -> tuple[np.ndarray | None, list[str]]:
    """The group of every sequence as text, (N,), and a sentence where two have nearly the same name.

    Raises:
        DataError: there is not one group for each.
    """
    if given is None:
        return None, []
    if given.shape != (N,) or given.dtype.kind not in "fiubUS":
        raise DataError(
            f"{path}: the groups are {given.shape} of {given.dtype}; one for each of {N} sequences is needed."
        )
    groups = names_of(given)
    if given.dtype.kind == "f" and not np.isfinite(given).all():
        raise DataError(
            f"{path}: the group of sequence {int(np.isfinite(given).argmin())} is not a finite number"
            "; every sequence needs one."
        )
    if (groups == "").any():
        raise DataError(
            f"{path}: the group of sequence {int((groups == '').argmax())} is empty; every sequence needs one."
        )
    alike = pairs_alike(groups.tolist())[:1]
    return groups, [f"{path}: {one!r} and {other!r} are two groups, as their names differ" for one, other in alike]


def _refuse_not_finite(x: np.ndarray, missing: bool, features: tuple[str, ...], path: Path) -> None:
    wrong = np.argwhere(np.isinf(x) if missing else ~np.isfinite(x))
    if len(wrong):
        n, t, i = wrong[0].tolist()
        place = f"{path}: sequence {n}, step {t}, feature {shown(features[i]) if features else i}"
        if np.isnan(x[n, t, i]):
            raise DataError(
                f"{place} is missing: it is no finite number; use task.missing=mask or last for such a file."
            )
        raise DataError(f"{place} is no finite number: correct it, or leave the sequence out.")


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
        raise DataError(
            f"{path}: sequence {int(seen.argmax())} is in more than one part, or twice in one; name it once."
        )
    if parts and "train" not in parts:
        raise DataError(f"{path}: the parts are {', '.join(parts)}, without train: add the part train.")
    return {part: chosen.astype(np.int64) for part, chosen in parts.items()}
