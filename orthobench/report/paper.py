"""The tables of a paper as a document: published numbers and claims beside ours, in the words of a table."""

from pathlib import Path

from orthobench.report import costs, document
from orthobench.report.document import Document, Grid, Section
from orthobench.report.numbers import HEADERS, cells, counts, grid, numbers, protocol
from orthobench.report.quantities import NOTHING, Quantity, Shown
from orthobench.study.catalogue import SHIPPED, Catalogue
from orthobench.study.costs.run_costs import spent
from orthobench.study.statistics.status import NOT_REPRODUCED
from orthobench.study.tables.table import FAIR, FULL, Table
from orthobench.study.verdicts.comparison import Compared, Comparison, compare, presets
from orthobench.study.verdicts.ucr import ranking_lines

INTRODUCTION = """\
Published numbers beside ours, written by `orthobench tables`. The statuses are defined in
[judging.md](../../docs/explanation/judging.md). *published*: as printed, ± the paper's standard deviation.
*paper's runs*: how many are behind the published number, and which of their weights were scored: those of the best
validation, the last ones, or those of the best test score. *trivial*: the trivial predictor's score. *ours*: mean ±
half of the 95 % interval over n seeds, of the weights with the best validation score and of the last ones. *same
protocol*: the paper's own selection, with the 95 % prediction interval of one published result. *runs*: how many
finished runs are behind ours, and which code made them. Their names are below the table. *core h* of rows that are not
run: the hours of one core for all seeds, by measured costs (`results/bench/costs.csv`).
"""
CLAIM_HEADERS = ("claim", "of", "kind", "section", "status", "runs")
DATA = (*HEADERS, "claim")


def document_of(name: str, results: Path, catalogue: Catalogue = SHIPPED, drawn: bool = False) -> Document:
    """A paper's document; with figures where `drawn`."""
    found = comparisons(name, results, catalogue)
    sections = tuple(section(one, results if drawn else None) for one in found)
    return Document(name, introduction(found, results), sections, _data(found))


def introduction(found: list[Comparison], results: Path) -> str:
    """Legend of the tables of a paper, and the hours that their runs took."""
    hours = spent(results, dict.fromkeys(one.table.name for one in found))
    return f"{INTRODUCTION}The runs that are recorded for these tables took {hours}.\n" if hours else INTRODUCTION


def comparisons(name: str, results: Path, catalogue: Catalogue = SHIPPED) -> list[Comparison]:
    """Every table of a paper in full, each followed by its shortened versions that have records."""
    found = [table for table in catalogue.tables([name]) if table.track != FAIR]
    tables = sorted(found, key=lambda table: (not table.name.startswith(f"{name}/table"), table.name))
    return [compare(table, results, preset) for table in tables for preset in (FULL, *presets(table.name, results))]


def section(comparison: Comparison, results: Path | None = None) -> Section:
    """Section of a table; with the figures of the curves under `results`, where that is given."""
    from orthobench.report.figures import figures

    return document.of_table(
        comparison,
        facts=_facts(comparison),
        grids=(numbers(comparison), counts(comparison), claims(comparison), costs.costs(comparison.costs)),
        paragraphs=tuple(ranking_lines(comparison)),
        notes=tuple(footnotes(comparison)),
        figures={} if results is None else figures(comparison, results),
    )


def claims(comparison: Comparison) -> Grid:
    """The claims of a table."""
    rows = [_claim(compared) for compared in comparison.claims]
    return grid(comparison, CLAIM_HEADERS, rows, comparison.claims)


def footnotes(comparison: Comparison) -> list[str]:
    """The code behind the numbers, notes on single rows and on lost numbers, the runs' deviations from the paper's."""
    noted = [c.printed for c in (*comparison.numbers, *comparison.claims) if c.printed.note]
    notes = [f"{one.label}, {one.column}: {one.note}" for one in noted]
    lost = sorted({c.printed.reason for c in comparison.numbers if c.printed.reason})
    reasons = (str(reason) for reason in lost)
    codes = [*comparison.made_by.notes, *costs.notes(comparison.costs.values())]
    told = [*comparison.notes, *codes, *notes, *reasons, *unstated(comparison.table), *comparison.table.notes]
    return list(dict.fromkeys(told))


def unstated(table: Table) -> list[str]:
    """Sentences about the settings that the paper leaves out, with their rows where these are not all."""
    found: dict[tuple[str, ...], list[str]] = {}
    for row, names in table.unstated.items():
        found.setdefault(names, []).append(row)
    sentences = []
    for names, rows in found.items():
        where = "" if len(rows) == len(table.rows) else f" for {', '.join(rows)}"
        sentences += [f"Not stated in the paper{where}: {', '.join(names)}."] if names else []
    return sentences


def _facts(comparison: Comparison) -> tuple[str, ...]:
    table = comparison.table
    margins = ", ".join(f"{name} {value:g}" for name, value in table.margin.items()) or "none"
    chosen = protocol(comparison)
    return (
        f"Track {table.track}, {len(table.planned(comparison.preset))} seeds, margin {margins}",
        *([f"the paper scores the {chosen}"] if chosen else []),
        *([f"needs {table.needs}"] if table.needs else []),
        *(f"contradicted here: {claim}" for claim in dict.fromkeys(_contradicted(comparison))),
    )


def _contradicted(comparison: Comparison) -> list[str]:
    """The claims of a full table of which the opposite came out, each with what it is of."""
    found = [one for one in comparison.claims if one.verdict.word == NOT_REPRODUCED and comparison.preset == FULL]
    return [f"{(one.printed.claim or '').rstrip('.')} ({one.printed.label}, {one.printed.column})" for one in found]


def _data(found: list[Comparison]) -> Grid:
    """All numbers and claims of a paper with the sentence behind each status, and the records that fill nothing.

    What a claim is of stands in the column `row`.
    """
    lines: list[list[Shown]] = []
    for one in found:
        place = [one.table.name, one.preset]
        lines += [
            _data_line([*place, "number"], one, c, dict(zip(HEADERS, cells(c, one), strict=True))) for c in one.numbers
        ]
        for compared in one.claims:
            named = dict(zip(CLAIM_HEADERS, _claim(compared), strict=True))
            lines.append(_data_line([*place, "claim"], one, compared, {**named, "row": named["of"]}))
        lines.extend([*place, "record", *[""] * len(DATA), note, "", ""] for note in one.notes)
    return Grid(["table", "preset", "kind", *DATA, "detail", "run ids", "made by"], lines)


def _data_line(place: list[str], comparison: Comparison, compared: Compared, named: dict[str, Shown]) -> list[Shown]:
    runs, full = compared.runs, comparison.preset == FULL
    named["runs"] = Quantity(len(runs)) if runs else NOTHING
    named["status"] = named["status"] if full else NOTHING
    behind = [compared.verdict.detail if full else NOTHING, " ".join(runs), comparison.made_by.words(runs)]
    return [*place, *(named.get(header, NOTHING) for header in DATA), *behind]


def _claim(compared: Compared) -> list[Shown]:
    """Cells of a claim, in the order of CLAIM_HEADERS."""
    printed = compared.printed
    runs = Quantity(len(compared.runs)) if compared.runs else NOTHING
    of, kind = f"{printed.label}, {printed.column}", printed.claim_kind
    return [printed.claim or "", of, kind, printed.section, str(compared.verdict), runs]
