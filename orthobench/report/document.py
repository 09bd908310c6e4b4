"""Document of sections, each with its grids of words and numbers, before it is Markdown, CSV, LaTeX or HTML.

The published tables (paper.py) and the fair ones (fair.py) both fill it; markup.py and the site only read it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from orthobench.report.quantities import Shown
from orthobench.study.records.records import Line
from orthobench.study.tables.table import FULL
from orthobench.study.verdicts.comparison import Comparison
from orthobench.study.verdicts.fair import FairTable
from orthobench.study.verdicts.searched import SearchedTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from orthobench.report.drawing import Title


@dataclass(frozen=True)
class Grid:
    """Lines of words and numbers under headers.

    Attributes:
        headers: what stands above each column; a column `status` is marked with the sign of that.
        rows: the cells, line by line.
        numeric: headers of the columns that are set flush right.
        case: what its runs have in common, such as `T=50`, where a section has several cases.
        subject: what it shows beside the main one of its section, such as `by learning rate`; empty for a main one.
        runs: for each line the ids of the runs behind it, shown where the pointer rests on the column `runs`.
        statuses: for each line the word of its status, where it has one.
        details: for each line the sentence behind its status, shown where the pointer rests on that.
        aside: headers of the columns for which Markdown and LaTeX have no room.
        caption: what all its lines are about, where a column that says so is left aside.
    """

    headers: list[str]
    rows: Sequence[Sequence[Shown]]
    numeric: frozenset[str] = frozenset()
    case: str = ""
    subject: str = ""
    runs: list[Sequence[str]] = field(default_factory=list)
    statuses: list[str] = field(default_factory=list)
    details: list[str] = field(default_factory=list)
    aside: frozenset[str] = frozenset()
    caption: str = ""

    def narrow(self) -> tuple[list[str], list[list[Shown]]]:
        """The headers and the lines without what is left aside."""
        kept = [i for i, header in enumerate(self.headers) if header not in self.aside]
        return [self.headers[i] for i in kept], [[row[i] for i in kept] for row in self.rows]


@dataclass(frozen=True)
class Section:
    """Table of one preset, with everything that belongs to it.

    Attributes:
        anchor: the name that links to it.
        title: its name in a list of contents.
        heading: its title with what it is shortened to.
        facts: what holds for the whole table, in half sentences; empty for an overview of several tables.
        records: the records behind it, relative to the folder of results; None while nothing is recorded.
        grids: those without lines are left out.
        paragraphs: further text; a paragraph whose lines begin with `- ` is a list.
        notes: footnotes.
        figures: by title.
        runs: ids of the runs behind it by row, in the order of their seeds.
    """

    anchor: str
    title: str
    heading: str
    facts: tuple[str, ...] = ()
    records: str | None = None
    grids: tuple[Grid, ...] = ()
    paragraphs: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    figures: "dict[Title, Figure]" = field(default_factory=dict)
    runs: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Document:
    """The tables of a paper, or of the fair track.

    Attributes:
        name: the paper, or `fair`; also the name of its files.
        introduction: how its tables are read, in Markdown without blocks.
        sections: in the order in which they are shown.
        data: everything as one long grid, for a spreadsheet.
    """

    name: str
    introduction: str
    sections: tuple[Section, ...]
    data: Grid


def anchor(table: str, preset: str = FULL) -> str:
    """The name that links to a table of a preset."""
    name = table.replace("/", "-")
    return name if preset == FULL else f"{name}-{preset}"


def shortened(name: str, preset: str, overrides: Iterable[str] = ()) -> str:
    """A heading with what shortens the runs below it."""
    words = " ".join(overrides)
    return name if preset == FULL else f"{name}, shortened to {preset}" + (f": {words}" if words else "")


def of_table(found: Comparison | FairTable | SearchedTable, **rest: Any) -> Section:
    """Section of a table with its names and what its records are; `rest` are its further attributes."""
    table, preset = found.table, found.preset
    overrides = () if preset == FULL else table.presets[preset].overrides
    return Section(
        anchor=anchor(table.name, preset),
        title=table.title if preset == FULL else f"{table.title} ({preset})",
        heading=shortened(f"{table.title} (`{table.name}`)", preset, overrides),
        records=f"records/{table.name}.csv" if found.lines else None,
        runs=runs(found.lines),
        **rest,
    )


def runs(lines: Iterable[Line]) -> dict[str, list[str]]:
    """The ids of the runs behind a table by row, in the order of their seeds."""
    found: dict[str, list[str]] = {}
    for line in sorted(lines, key=lambda line: line.seed):
        found.setdefault(line.row, []).append(line.run_id)
    return found
