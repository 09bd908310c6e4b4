"""Rows of a table in which most columns have one value, which is kept once for many rows."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

Flat = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns of some rows.

    Attributes:
        names: of all columns, in their order.
        fixed: the values that all of the rows have.
        varying: names of the other columns, in the order of a row's values.
    """

    names: tuple[str, ...]
    fixed: Flat
    varying: tuple[str, ...]


RecordRow = tuple[Columns, tuple[Any, ...]]


def table(rows: Iterable[RecordRow]) -> "pd.DataFrame":
    """The table that pandas makes of rows as dictionaries, by columns, which takes less time."""
    places: dict[Columns, list[int]] = {}
    values: dict[Columns, list[tuple[Any, ...]]] = {}
    for place, (layout, row) in enumerate(rows):
        places.setdefault(layout, []).append(place)
        values.setdefault(layout, []).append(row)
    _join(places, values)
    order = list(chain.from_iterable(places.values()))
    found = _alike(*values.popitem()) if len(values) == 1 else _unlike(values)
    return found if order == sorted(order) else found.set_axis(order).sort_index().reset_index(drop=True)


def _unlike(values: dict[Columns, list[tuple[Any, ...]]]) -> "pd.DataFrame":
    """The table of rows of several layouts, layout by layout."""
    import pandas as pd

    columns: dict[str, list[Any]] = {}
    done = 0
    for layout, alike in values.items():
        varying = dict(zip(layout.varying, zip(*alike, strict=True), strict=True))
        for name in layout.names:
            column = columns.setdefault(name, [math.nan] * done)
            column += varying[name] if name in varying else [layout.fixed[name]] * len(alike)
        done += len(alike)
        for name in columns.keys() - layout.names:
            columns[name] += [math.nan] * len(alike)
    return pd.DataFrame(columns) if columns else pd.DataFrame([])


def _join(places: dict[Columns, list[int]], values: dict[Columns, list[tuple[Any, ...]]]) -> None:
    """Write rows of other layouts in that of the most rows, where they have its fixed values."""
    most = max(values, key=lambda layout: len(values[layout]), default=None)
    if most is None:
        return
    for layout in [one for one in values if one is not most and one.names == most.names]:
        whole = [layout.fixed | dict(zip(layout.varying, row, strict=True)) for row in values[layout]]
        fixed = most.fixed.items()
        if all(type(row[name]) is type(value) and row[name] == value for row in whole for name, value in fixed):
            values[most] += [tuple(map(row.__getitem__, most.varying)) for row in whole]
            places[most] += places.pop(layout)
            del values[layout]


def _alike(layout: Columns, rows: list[tuple[Any, ...]]) -> "pd.DataFrame":
    """The table of rows of one layout: pandas looks at a fixed value once."""
    import pandas as pd

    same = pd.DataFrame({name: [value] for name, value in layout.fixed.items()}, index=[0])
    same = same.take([0] * len(rows)).reset_index(drop=True)
    other = pd.DataFrame(dict(zip(layout.varying, zip(*rows, strict=True), strict=True)), index=same.index)
    return pd.concat([same, other], axis=1).reindex(columns=list(layout.names))
