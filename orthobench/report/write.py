"""results/tables/<paper>.md, .csv and .tex: every table of a paper, from records and published numbers alone.

The fair track, which is nobody's paper, has files of its own: results/tables/fair.md, .csv and .tex. The same records
give the same bytes: no dates, no order but that of the published rows.
"""

from pathlib import Path

from orthobench.analysis.comparison import compare
from orthobench.analysis.fair import fair_table
from orthobench.analysis.published import papers
from orthobench.analysis.recorded import everything
from orthobench.config.table import FAIR, Table, load, tables
from orthobench.recording.files import within, write_bytes
from orthobench.report import fair, paper
from orthobench.report.document import Document, Section
from orthobench.report.markup import csv_text, latex, markdown

RENDERERS = {"md": markdown, "csv": csv_text, "tex": latex}


def parts(folders: tuple[Path, ...] = ()) -> tuple[str, ...]:
    """What has files of its own: every paper, and the fair track."""
    return (*papers(folders), FAIR)


def filled(part: str, results: Path, folders: tuple[Path, ...] = (), drawn: bool = False) -> Document:
    """The document of a paper, or of the fair track; with figures where `drawn`."""
    return fair.filled(results, folders, drawn) if part == FAIR else paper.filled(part, results, folders, drawn)


def section(table: Table, results: Path, preset: str, drawn: bool = False) -> Section:
    """One table of one preset; with its figures where `drawn`."""
    if table.track == FAIR:
        return fair.section(fair_table(table, results, preset), drawn)
    return paper.section(compare(table, results, preset), results if drawn else None)


def render(part: str, results: Path, folders: tuple[Path, ...] = ()) -> dict[str, str]:
    """The tables of a paper, or of the fair track, by suffix."""
    document = filled(part, results, folders)
    return {suffix: rendered(document) for suffix, rendered in RENDERERS.items()}


def write(results: Path, some: tuple[str, ...] = (), folders: tuple[Path, ...] = ()) -> list[Path]:
    """Write the tables of some papers, and always of the fair track, where they changed; returns their paths."""
    changed = _differing(results, (*some, FAIR), folders)
    for path, text in changed.items():
        write_bytes(path, text.encode())
    return list(changed)


def stale(results: Path, some: tuple[str, ...], folders: tuple[Path, ...] = ()) -> list[Path]:
    """Files of these parts that are not what the records say."""
    return list(_differing(results, some, folders))


def unfit(results: Path, some: tuple[str, ...], folders: tuple[Path, ...] = ()) -> list[str]:
    """One sentence for each record of these parts that was made with other settings than its row has today."""
    names = (name for name in tables(folders) if name.split("/")[0] in some)
    return [note for name in names for found in everything(load(name, folders), results) for note in found.notes]


def _differing(results: Path, some: tuple[str, ...], folders: tuple[Path, ...]) -> dict[Path, str]:
    """What the files of some parts should hold, where they do not."""
    texts = {
        within(results, f"tables/{part}.{suffix}"): text
        for part in dict.fromkeys(some)
        for suffix, text in render(part, results, folders).items()
    }
    return {path: text for path, text in texts.items() if not path.is_file() or path.read_bytes() != text.encode()}
