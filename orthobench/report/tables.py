"""results/tables/<paper>.md and .csv, and .tex where it is asked for: every table of a paper.

They come from records and published numbers alone. The fair track, which is nobody's paper, has files of its own:
results/tables/fair.md and .csv. So have the searched tables, fair2.md, once something of them is recorded. The same
records give the same bytes: no dates, no order but that of the published rows.
"""

from pathlib import Path

from orthobench.recording.files import within, write_bytes
from orthobench.report import fair, paper, searched
from orthobench.report.document import Document, Section
from orthobench.report.markup import csv_text, latex, markdown
from orthobench.report.renewing import differing
from orthobench.study.catalogue import SHIPPED, Catalogue
from orthobench.study.records.recorded import of_every_preset
from orthobench.study.tables.table import FAIR, SEARCHED, Table
from orthobench.study.verdicts.comparison import compare
from orthobench.study.verdicts.fair import fair_table
from orthobench.study.verdicts.searched import searched_table

RENDERERS = {"md": markdown, "csv": csv_text, "tex": latex}
COMMITTED, LATEX = ("md", "csv"), ("tex",)  # suffixes: what is always written, and what is when it is asked for


def parts(catalogue: Catalogue = SHIPPED) -> tuple[str, ...]:
    """Parts that have files of their own: every paper, the fair track, and the searched tables."""
    return (*catalogue.papers(), FAIR, searched.PART)


def document_of(part: str, results: Path, catalogue: Catalogue = SHIPPED, drawn: bool = False) -> Document:
    """The document of a paper, of the fair track or of the searched tables; with figures where `drawn`."""
    if part == searched.PART:
        return searched.document_of(results, catalogue, drawn)
    return (
        fair.document_of(results, catalogue, drawn)
        if part == FAIR
        else paper.document_of(part, results, catalogue, drawn)
    )


def section(table: Table, results: Path, preset: str, drawn: bool = False) -> Section:
    """Section of a table of one preset; with its figures where `drawn`."""
    if table.track == FAIR:
        return fair.section(fair_table(table, results, preset), drawn)
    if table.track == SEARCHED:
        return searched.section(searched_table(table, results, preset), drawn)
    return paper.section(compare(table, results, preset), results if drawn else None)


def render(
    part: str, results: Path, catalogue: Catalogue = SHIPPED, suffixes: tuple[str, ...] = COMMITTED
) -> dict[str, str]:
    """The tables of a paper, or of a fair track, by suffix; nothing of searched tables that are not begun."""
    document = document_of(part, results, catalogue)
    if part == searched.PART and not document.sections:
        return {}
    return {suffix: RENDERERS[suffix](document) for suffix in suffixes}


def write(
    results: Path,
    some: tuple[str, ...] = (),
    catalogue: Catalogue = SHIPPED,
    suffixes: tuple[str, ...] = COMMITTED,
) -> list[Path]:
    """Write the tables of some papers, and always of the fair tracks, where they changed; returns their paths."""
    changed = _differing(results, (*some, FAIR, searched.PART), catalogue, suffixes)
    for path, text in changed.items():
        write_bytes(path, text.encode())
    return list(changed)


def stale(
    results: Path, some: tuple[str, ...], catalogue: Catalogue = SHIPPED, suffixes: tuple[str, ...] = COMMITTED
) -> list[Path]:
    """Files of these parts that are not what the records say."""
    return list(_differing(results, some, catalogue, suffixes))


def unfit(results: Path, some: tuple[str, ...], catalogue: Catalogue = SHIPPED) -> list[str]:
    """Sentences for the records of these parts that were made with other settings than their rows have today."""
    tables = catalogue.tables(some)
    return [note for table in tables for found in of_every_preset(table, results) for note in found.notes]


def _differing(
    results: Path, some: tuple[str, ...], catalogue: Catalogue, suffixes: tuple[str, ...]
) -> dict[Path, str]:
    """Text that the files of some parts should hold, where they do not."""
    wanted = {
        within(results, f"tables/{part}.{suffix}"): text
        for part in dict.fromkeys(some)
        for suffix, text in render(part, results, catalogue, suffixes).items()
    }
    return differing(wanted)
