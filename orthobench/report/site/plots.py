"""A plot with what belongs to it: the controls that choose what is shown, a table beside it, and its data as CSV."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from orthobench.recording.files import as_csv
from orthobench.report.markup import no_formula
from orthobench.report.quantities import NOTHING, Quantity, Shown

DIGITS = 4


@dataclass(frozen=True)
class LinkedCell:
    """A cell of a table.

    Attributes:
        value: what stands in it; a bare number is read with four significant digits.
        href: where it leads, from the root of the site; empty for nowhere.
        title: what is shown where the pointer rests on it.
        mark: the name of a style, such as a status.
    """

    value: Shown | float | None
    href: str = ""
    title: str = ""
    mark: str = ""


@dataclass(frozen=True)
class LinkedTable:
    """A table.

    Attributes:
        headers: what stands above each column.
        rows: line by line.
        numeric: headers of the columns that are set flush right.
        match: for each line the values by which the controls of its plot choose it; empty where all are shown.
        caption: what it shows.
        ids: for each line its name in the page, for links; empty where nothing leads there.
    """

    headers: list[str]
    rows: list[list[LinkedCell]]
    numeric: frozenset[str] = frozenset()
    match: list[dict[str, Any]] = field(default_factory=list)
    caption: str = ""
    ids: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Control:
    """Something that chooses what a plot shows.

    Attributes:
        name: the value of a line that it is compared with (`filter`), or the `@name` that it fills in (`token`).
        label: what stands before it.
        options: values, each with what is shown for it; none for a number.
        role: `filter`, `token`, `most`, a number that the value named by `of` may not exceed, or `find`, words of which
            the value named by `of` has one, so that its mark is stressed.
        of: with `most` the token whose value names the number that is limited; with `find` the value of a line.
        value: what stands in it at first; empty for nothing, or the first option.
    """

    name: str
    label: str
    options: tuple[tuple[str, str], ...] = ()
    role: str = "filter"
    of: str = ""
    value: str = ""


@dataclass(frozen=True)
class Plot:
    """A plot.

    Attributes:
        name: of its data's file, and of its place in the page.
        title: what it shows.
        words: the same for those who cannot see it.
        spec: Vega-Lite, whose data are called `shown`, and in which a text `@name` stands for what a control says, or
            else for that value of the first line that is shown.
        values: a dictionary for each line of the data.
        lines: the table beside it; None where the page has it already.
        controls: in order; what is left to choose from depends on those before.
        note: how it is read.
    """

    name: str
    title: str
    words: str
    spec: dict[str, Any]
    values: list[dict[str, Any]]
    lines: LinkedTable | None = None
    controls: tuple[Control, ...] = ()
    note: str = ""

    @property
    def payload(self) -> dict[str, Any]:
        """Data that the script of the page reads."""
        return {"spec": self.spec, "values": self.values, "match": self.lines.match if self.lines else []}

    @property
    def csv(self) -> str:
        """The data, without the places of pages, and with no text that a spreadsheet would take for a formula."""
        headers = list(dict.fromkeys(name for line in self.values for name in line if name != "href"))
        return as_csv(headers, ([_plain(line.get(name)) for name in headers] for line in self.values))


def options(values: Iterable[Any]) -> tuple[tuple[str, str], ...]:
    """Each value once, shown as it is."""
    return tuple((str(value), str(value)) for value in dict.fromkeys(values))


def shown(value: Any) -> str:
    """A number with four significant digits, a whole number with its thousands apart, other things as text."""
    if value is None or isinstance(value, str | bool | Quantity):
        return NOTHING if value is None else str(value)
    if isinstance(value, float) and not value.is_integer():
        text = f"{value:,.{DIGITS}g}"
        return f"{value:,.0f}" if "e+" in text else text
    return f"{value:,.0f}" if isinstance(value, int | float) else ", ".join(map(str, value))


def order(value: Any) -> float | None:
    """Number by which a column is sorted; None for words."""
    found = value.order if isinstance(value, Quantity) else value
    return found if isinstance(found, int | float) and not isinstance(found, bool) and isfinite(found) else None


def interval(line: dict[str, Any]) -> Shown:
    """The ends of the 95 % interval of a mean."""
    return NOTHING if line["low"] is None else Quantity(None, 4, ends=(line["low"], line["high"]))


def _plain(value: Any) -> str:
    return no_formula(value) if isinstance(value, str) else "" if value is None else str(value)
