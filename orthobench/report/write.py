"""results/tables/<paper>.md, .csv and .tex: every table of a paper, from records and published numbers alone.

The fair track, which is nobody's paper, has files of its own: results/tables/fair.md, .csv and .tex.

The same records give the same bytes: no dates, no order but that of the published rows.
"""

from pathlib import Path

from orthobench.analysis.comparison import Comparison, compare, presets
from orthobench.analysis.published import papers
from orthobench.analysis.ucr import ranking_lines
from orthobench.config import table as experiment
from orthobench.config.table import FAIR, FULL
from orthobench.recording.files import write_bytes
from orthobench.report import fair as fair_tables
from orthobench.report import wording
from orthobench.report.markup import csv_table, latex_table, markdown_table, md

INTRODUCTION = """\
Published numbers beside ours, written by `orthobench tables`; how statuses are decided stands in
[reproducing.md](../../docs/reproducing.md). *ours, best validation*: mean ± half of the 95 % interval over n seeds, of
the weights with the best validation score. *same protocol*: the paper's own selection, with the 95 % prediction
interval of its number of runs. *converged*: seeds that did not diverge.
"""


def parts(folders: tuple[Path, ...] = ()) -> tuple[str, ...]:
    """What has a file of its own: every paper, and the fair track."""
    return (*papers(folders), FAIR)


def comparisons(paper: str, results: Path, folders: tuple[Path, ...] = ()) -> list[Comparison]:
    """Every table of a paper in full, each followed by its shortened versions that have records."""
    names = [name for name in experiment.tables(folders) if name.startswith(f"{paper}/")]
    order = sorted(names, key=lambda name: (not name.startswith(f"{paper}/table"), name))
    tables = [table for name in order if (table := experiment.load(name, folders)).track != FAIR]
    return [compare(table, results, preset) for table in tables for preset in (FULL, *presets(table.name, results))]


def render(part: str, results: Path, folders: tuple[Path, ...] = ()) -> dict[str, str]:
    """The tables of a paper, or of the fair track, by suffix."""
    return fair_tables.render(results, folders) if part == FAIR else _published(part, results, folders)


def _published(paper: str, results: Path, folders: tuple[Path, ...]) -> dict[str, str]:
    found = comparisons(paper, results, folders)
    return {"md": _markdown(paper, found), "csv": _csv(found), "tex": _latex(paper, found)}


def write(results: Path, some: tuple[str, ...] = (), folders: tuple[Path, ...] = ()) -> list[Path]:
    """Write the tables of some papers, and always of the fair track, where they changed; returns their paths."""
    changed = []
    for part in dict.fromkeys((*some, FAIR)):
        for suffix, text in render(part, results, folders).items():
            path = results / "tables" / f"{part}.{suffix}"
            if not path.is_file() or path.read_bytes() != text.encode():
                write_bytes(path, text.encode())
                changed.append(path)
    return changed


def stale(results: Path, some: tuple[str, ...], folders: tuple[Path, ...] = ()) -> list[Path]:
    """Files of these parts that are not what the records say."""
    rendered = ((part, suffix, text) for part in some for suffix, text in render(part, results, folders).items())
    paths = [(results / "tables" / f"{part}.{suffix}", text) for part, suffix, text in rendered]
    return [path for path, text in paths if not path.is_file() or path.read_bytes() != text.encode()]


def heading(comparison: Comparison) -> str:
    """Title of a table, with its length when it is shortened."""
    table = comparison.table
    name = f"{wording.title(comparison)} (`{table.name}`)"
    if comparison.preset == FULL:
        return name
    return f"{name}, shortened to {comparison.preset}: {' '.join(table.presets[comparison.preset].overrides)}"


def lines_of(comparison: Comparison) -> tuple[list[str], list[list[str]]]:
    """Headers and lines of the numbers; a shortened table has no status."""
    places = wording.column_decimals(comparison)
    rows = [wording.cells(compared, places[compared.row.column]) for compared in comparison.numbers]
    return _without_status(comparison, list(wording.HEADERS), rows)


def claims_of(comparison: Comparison) -> tuple[list[str], list[list[str]]]:
    """Headers and lines of the claims."""
    rows = [wording.claim_cells(compared) for compared in comparison.claims]
    return _without_status(comparison, list(wording.CLAIM_HEADERS), rows)


def footnotes(comparison: Comparison) -> list[str]:
    """What is known of single rows, then where the runs differ from the paper's."""
    noted = [c.row for c in (*comparison.numbers, *comparison.claims) if c.row.note]
    notes = [f"{row.row}, {row.column}: {row.note}" for row in noted]
    lost = sorted({c.row.reason for c in comparison.numbers if c.row.reason})
    return list(dict.fromkeys([*notes, *(str(reason) for reason in lost), *comparison.table.notes]))


def _without_status(
    comparison: Comparison, headers: list[str], rows: list[list[str]]
) -> tuple[list[str], list[list[str]]]:
    if comparison.preset == FULL:
        return headers, rows
    at = headers.index("status")
    return headers[:at] + headers[at + 1 :], [row[:at] + row[at + 1 :] for row in rows]


def _markdown(paper: str, found: list[Comparison]) -> str:
    parts = [f"# {paper}\n", INTRODUCTION]
    for comparison in found:
        table = comparison.table
        margins = ", ".join(f"{name} {value:g}" for name, value in table.margin.items()) or "none"
        chosen = wording.protocol(comparison)
        facts = f"Track {table.track}, {len(table.planned(comparison.preset))} seeds, margin {margins}"
        facts += f"; the paper scores the {chosen}" if chosen else ""
        facts += f"; needs {table.needs}" if table.needs else ""
        where = f"[Records](../records/{table.name}.csv)" if comparison.lines else "No records yet."
        parts.append(f"## {md(heading(comparison))}\n\n{facts}. {where}\n")
        for headers, rows in (lines_of(comparison), claims_of(comparison)):
            if rows:
                parts.append(markdown_table(headers, rows))
        parts += [text + "\n" for text in ranking_lines(comparison)]
        if footnotes(comparison):
            parts.append("".join(f"- {md(note)}\n" for note in footnotes(comparison)))
    return "\n".join(parts)


def _csv(found: list[Comparison]) -> str:
    lines = []
    for comparison in found:
        for kind, part in (("number", lines_of(comparison)), ("claim", claims_of(comparison))):
            headers, rows = part
            for row in rows:
                named = dict(zip(headers, row, strict=True))
                named["row"] = named.get("row", named.get("of", ""))
                cells = [named.get(header, "") for header in (*wording.HEADERS, "claim")]
                lines.append([comparison.table.name, comparison.preset, kind, *cells])
    return csv_table(["table", "preset", "kind", *wording.HEADERS, "claim"], lines)


def _latex(paper: str, found: list[Comparison]) -> str:
    parts = [f"% {paper}: written by `orthobench tables`; needs the package longtable\n"]
    for comparison in found:
        for headers, rows in (lines_of(comparison), claims_of(comparison)):
            if rows:
                parts.append(latex_table(heading(comparison), headers, rows))
    return "\n".join(parts)
