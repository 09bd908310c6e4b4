"""Drift: how the numbers of a run made again differ from its record, beside the spread over the recorded seeds."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import isclose

from orthobench.study.records.records import COST, DIGEST, IDENTITY, MADE_OF, PROVENANCE, Line

ROUNDING = 1e-5  # relative, and absolute: what single precision leaves after sums in another order
BITWISE, ROUNDED, DIFFERENT = "bitwise the same", "the same to rounding", "different"
PLAIN = {*IDENTITY, *PROVENANCE, *COST, *MADE_OF, DIGEST} - {"steps"}


@dataclass(frozen=True)
class Drift:
    """Number of a run: as it was recorded, made again, and over the recorded seeds of its row.

    Attributes:
        before: the recorded number; None where there is none.
        after: that of the rerun, likewise.
        seeds: the least and the greatest over the recorded seeds of the row; None for one seed.
    """

    name: str
    before: float | None
    after: float | None
    seeds: tuple[float, float] | None

    @property
    def word(self) -> str:
        """`bitwise the same`, `the same to rounding` or `different`."""
        if self.before == self.after:
            return BITWISE
        if self.before is None or self.after is None:
            return DIFFERENT
        close = isclose(self.before, self.after, rel_tol=ROUNDING, abs_tol=ROUNDING)
        return ROUNDED if close else DIFFERENT


def drifts(before: Line, after: Line, row: Iterable[Line]) -> list[Drift]:
    """Every number of a run that training makes, with what a rerun gave.

    Args:
        before: its record.
        after: the rerun.
        row: the recorded runs of its row.
    """
    names = [name for name in {**before.values, **after.values} if _is_made(name)]
    lines = list(row)
    return [Drift(name, _of(before, name), _of(after, name), _spread(lines, name)) for name in sorted(names)]


def verdict(found: Iterable[Drift]) -> str:
    """The word of the number that differs most."""
    words = {one.word for one in found}
    return next((word for word in (DIFFERENT, ROUNDED) if word in words), BITWISE)


def _is_made(name: str) -> bool:
    return name not in PLAIN and not name.startswith(("time/", "memory/", "parameters/", "budget/", "baseline/"))


def _of(line: Line, name: str) -> float | None:
    value = line.values.get(name)
    return float(value) if isinstance(value, int | float) else None


def _spread(lines: list[Line], name: str) -> tuple[float, float] | None:
    found = [value for line in lines if (value := _of(line, name)) is not None]
    return (min(found), max(found)) if len(found) > 1 else None
