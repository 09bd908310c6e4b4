"""What the page is made of: tables that sort, figures, notes, and the runs behind them, all text escaped."""

import re
from collections.abc import Iterable
from html import escape

from orthobench.analysis.comparison import Compared
from orthobench.analysis.records import Line
from orthobench.analysis.statistics import STATUSES
from orthobench.report.page import SIGNS

NUMERIC = {
    "published",
    "ours, best validation",
    "same protocol",
    "difference",
    "converged",
    "runs",
    "seed",
    "steps",
    "time/train_s",
}
PROVENANCE = (
    "cell",
    "seed",
    "status",
    "run_id",
    "steps",
    "time/train_s",
    "device",
    "cpu",
    "gpu",
    "engine",
    "torch",
    "git",
    "dirty",
    "finished",
)


def table(headers: list[str], rows: Iterable[list[str]], numeric: set[str], compared: Iterable[Compared] = ()) -> str:
    """A table whose headers sort it.

    Args:
        headers: what stands above the columns.
        rows: texts, line by line.
        numeric: headers of columns that are set flush right.
        compared: of published tables, what each line shows, for the runs behind it.
    """
    runs = [" ".join(c.runs) for c in compared]
    head = "".join(
        f'<th scope="col"{_kind(header, numeric)}><button type="button">{escape(header)}</button></th>'
        for header in headers
    )
    body = []
    for number, row in enumerate(rows):
        cells = "".join(
            _cell(h, text, numeric, runs[number] if runs else "") for h, text in zip(headers, row, strict=True)
        )
        body.append(f"<tr>{cells}</tr>")
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{"".join(body)}</tbody></table></div>\n'


def _cell(header: str, text: str, numeric: set[str], runs: str) -> str:
    if header == "status":
        status = next((s for s in sorted(STATUSES, key=len, reverse=True) if text.startswith(s)), "")
        sign = SIGNS.get(status, "")
        mark = f'<b aria-hidden="true">{sign}</b> ' if sign else ""
        return f'<td class="status {status.replace(" ", "-")}">{mark}{escape(text)}</td>'
    if header == "runs" and runs and text:
        return f'<td class="number" title="{escape(runs)}">{escape(text)}</td>'
    return f"<td{_kind(header, numeric)}>{escape(text)}</td>"


def _kind(header: str, numeric: set[str]) -> str:
    return ' class="number"' if header in numeric else ""


def provenance(lines: Iterable[Line]) -> str:
    """Every run behind a table: what it was, where, when, with what code and at what cost."""
    rows = [[str(line.values.get(name, "")) for name in PROVENANCE] for line in lines]
    if not rows:
        return ""
    return f"<details><summary>{len(rows)} runs</summary>{table(list(PROVENANCE), rows, NUMERIC)}</details>\n"


def section(anchor: str, heading: str, parts: Iterable[str]) -> str:
    """A table with everything that belongs to it."""
    return f'<section id="{anchor}">\n<h3>{_coded(heading)}</h3>\n{"".join(parts)}</section>\n'


def facts(text: str) -> str:
    """A line in small print."""
    return f'<p class="facts">{_coded(text)}</p>\n'


def drawn(figures: dict[str, str]) -> str:
    """Figures with their titles."""
    return "".join(
        f'<figure role="img" aria-label="{escape(title)}">{svg}<figcaption>{escape(title)}</figcaption></figure>'
        for title, svg in figures.items()
    )


def notes(lines: Iterable[str]) -> str:
    """Footnotes; nothing where there are none."""
    items = "".join(f"<li>{escape(note)}</li>" for note in lines)
    return f'<ul class="notes">{items}</ul>\n' if items else ""


def _coded(text: str) -> str:
    """Text with what stands between backticks as code."""
    return re.sub("`([^`]*)`", r"<code>\1</code>", escape(text))
