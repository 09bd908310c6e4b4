"""results/records/<paper>/<table>.curves.csv: the curves that a table's figures need, thinned, a point per line."""

from collections.abc import Iterable
from math import isfinite
from pathlib import Path
from typing import NamedTuple

from orthobench.recording import curve
from orthobench.recording.files import read_rows, within, write_rows

POINTS = 50
HEADERS = ("run_id", "preset", "cell", "seed", "name", "step", "value")


class CurvePoint(NamedTuple):
    """Point of a curve of one run; `row` is the row of its table, and `step` counts optimizer steps."""

    run_id: str
    preset: str
    row: str
    seed: int
    name: str
    step: int
    value: float


def path_of(results: Path, table: str) -> Path:
    """Path of the curves of `<paper>/<table>`."""
    return within(results, f"records/{table}.curves.csv")


def thinned(points: list[list[float]]) -> list[list[float]]:
    """At most about POINTS of the points, the first and the last among them."""
    return curve.thinned(points, POINTS)


def read(results: Path, table: str) -> list[CurvePoint]:
    """Every point of a table's curves; none where nothing was recorded.

    Raises:
        StorageError: the file is not what `add` wrote.
    """
    return read_rows(path_of(results, table), _point, "reproduce")


def add(results: Path, table: str, points: Iterable[CurvePoint]) -> None:
    """Append curves; those of the same preset, row and seed are replaced."""
    new = list(points)
    replaced = {(point.preset, point.row, point.seed) for point in new}
    kept = [p for p in read(results, table) if (p.preset, p.row, p.seed) not in replaced]
    if not kept and not new:
        return
    rows = ([*point[:-1], repr(point.value)] for point in sorted([*kept, *new]))
    write_rows(path_of(results, table), HEADERS, rows)


def _point(r: dict[str, str]) -> CurvePoint:
    place = r["run_id"], r["preset"], r["cell"], int(r["seed"])
    return CurvePoint(*place, r["name"], int(r["step"]), _number(r["value"]))


def _number(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise ValueError(f"{text} is no number")
    return value
