"""Rows of a file divided into parts for training, validation and the test, by shares or by whole groups of rows.

A part that the file names is kept. One that is drawn takes a share of the rows that are left, or, where rows belong to
groups such as a person, a device or a day, that share of the groups with all their rows.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from orthobench.datasets.padding import PARTS
from orthobench.errors import DataError

Indices = dict[str, np.ndarray]


@dataclass(frozen=True)
class Division:
    """Division of a file into parts.

    Attributes:
        val_share: share of the training rows, or groups, for validation.
        test_share: share of all rows, or groups, for the test.
        seed: of the validation part; the test part is the same for every seed.
        group: what the groups are called; None where there are none.
    """

    val_share: float
    test_share: float
    seed: int
    group: str | None = None

    def parts(self, given: Mapping[str, np.ndarray], N: int, groups: np.ndarray | None, path: str) -> Indices:
        """The indices of the rows of every part.

        Args:
            given: those that the file names.
            N: number of rows.
            groups: the group of every row, (N,); None where there are none.
            path: the file, for messages.

        Raises:
            DataError: there are too few rows or groups, or the file has one group in two of its parts.
        """
        if self.group is not None and groups is None:
            raise DataError(f"{path} has no {self.group}, which task.group= names: name a column, or an array (N,).")
        self._refuse_torn(given, groups, path)
        rest = given["train"] if given else np.arange(N)
        test, val = given.get("test"), given.get("val")
        if test is None:
            test, rest = self._drawn(rest, self.test_share, np.random.default_rng(0), groups, path)
        if val is None:
            val, rest = self._drawn(rest, self.val_share, np.random.default_rng([self.seed, 1]), groups, path)
        return {"train": rest, "val": val, "test": test}

    def _drawn(
        self, rows: np.ndarray, part: float, rng: np.random.Generator, groups: np.ndarray | None, path: str
    ) -> tuple[np.ndarray, np.ndarray]:
        """A share of the rows or of their groups, at least one, and the other rows."""
        kinds = rows if groups is None else np.unique(groups[rows])
        count = max(round(part * len(kinds)), 1)
        if count >= len(kinds):
            few = "sequences" if groups is None else f"different {self.group}"
            raise DataError(
                f"{path} has too few {few}: {len(kinds)} cannot be divided into parts; add more, or use smaller shares."
            )
        order = rng.permutation(len(kinds))
        if groups is None:
            return rows[np.sort(order[:count])], rows[np.sort(order[count:])]
        chosen = np.isin(groups[rows], kinds[order[:count]])
        return rows[chosen], rows[~chosen]

    def _refuse_torn(self, given: Mapping[str, np.ndarray], groups: np.ndarray | None, path: str) -> None:
        """Refuse a file of which two parts share a group."""
        place: dict[str, str] = {}
        for part, rows in given.items() if groups is not None else ():
            for one in np.unique(groups[rows]):  # type: ignore[index]
                other = place.setdefault(one, part)
                if other != part:
                    raise DataError(
                        f"{path}: {self.group} {one} is in {other} and in {part}, which the file names"
                        ": a group must be in one part alone."
                    )


def remarks(group: str | None, parts: Indices, groups: np.ndarray | None, path: str) -> list[str]:
    """A sentence on how many groups each part has; none where there are none."""
    if groups is None:
        return []
    counts = [f"{len(np.unique(groups[parts[part]]))} in {part} ({len(parts[part]):,} sequences)" for part in PARTS]
    return [f"{path}: {len(np.unique(groups))} groups by {group}: {', '.join(counts)}"]


def unused(given: Collection[str], left: int, N: int, path: str) -> list[str]:
    """A sentence on the rows, `left` of N, that are in none of the parts that the file names."""
    drawn = " and ".join(part for part in ("val", "test") if part not in given)
    rest = f"{left} of {N} sequences {'is' if left == 1 else 'are'} in none and not used"
    return [
        f"{path} names {', '.join(given)}: {rest}{f', and what makes {drawn} is drawn from train' if drawn else ''}"
    ]
