"""results/report.html: every table, figure and footnote on one page that needs nothing else, not even a network.

All text goes through `html.escape`; the page's policy lets nothing in but its own style, script and figures.
"""

from collections import Counter
from collections.abc import Iterable
from html import escape
from pathlib import Path

from orthobench.experiment import FULL
from orthobench.report import tables, wording
from orthobench.report.comparison import Compared, Comparison
from orthobench.report.figures import figures
from orthobench.report.page import SCRIPT, SIGNS, STYLE
from orthobench.report.published import PAPERS
from orthobench.report.records import Line
from orthobench.report.statistics import STATUSES
from orthobench.report.ucr import ranking_lines

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
NUMERIC = {"published", "ours, best validation", "same protocol", "difference", "converged", "runs", "seed", "steps"}
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


def page(results: Path) -> str:
    """The whole page."""
    found = {paper: tables.comparisons(paper, results) for paper in PAPERS}
    contents = "".join(_contents(paper, comparisons) for paper, comparisons in found.items())
    parts = "".join(_paper(paper, comparisons, results) for paper, comparisons in found.items())
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>orthobench: published numbers beside ours</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"<h1>Published numbers beside ours</h1>\n{_summary(found)}\n<nav>{contents}</nav>\n<main>{parts}</main>\n"
        f"<script>{SCRIPT}</script>\n</body>\n</html>\n"
    )


def anchor(comparison: Comparison) -> str:
    """The name that links to a table."""
    name = comparison.table.name.replace("/", "-")
    return name if comparison.preset == FULL else f"{name}-{comparison.preset}"


def _summary(found: dict[str, list[Comparison]]) -> str:
    """Numbers and claims of every paper by status; shortened tables do not count."""
    rows, total = [], Counter[str]()
    for paper, comparisons in found.items():
        full = [
            c for comparison in comparisons if comparison.preset == FULL for c in comparison.numbers + comparison.claims
        ]
        counts = Counter(compared.verdict.status for compared in full)
        total += counts
        rows.append([paper, *(str(counts[status]) for status in STATUSES), str(len(full))])
    everything = sum(total.values())
    told = ", ".join(f"{total[status]} {status}" for status in STATUSES if total[status])
    text = f"<p>{everything} published numbers and claims: {escape(told)}.</p>"
    return text + _table(["paper", *STATUSES, "all"], rows, set(STATUSES) | {"all"})


def _contents(paper: str, comparisons: list[Comparison]) -> str:
    links = []
    for comparison in comparisons:
        preset = "" if comparison.preset == FULL else f" ({comparison.preset})"
        links.append(f'<li><a href="#{anchor(comparison)}">{escape(wording.title(comparison) + preset)}</a></li>')
    return f'<p><a href="#{paper}"><b>{escape(paper)}</b></a></p><ul>{"".join(links)}</ul>'


def _paper(paper: str, comparisons: list[Comparison], results: Path) -> str:
    return f'<h2 id="{paper}">{escape(paper)}</h2>\n' + "".join(_section(c, results) for c in comparisons)


def _section(comparison: Comparison, results: Path) -> str:
    table = comparison.table
    facts = f"Track {table.track}; seeds {', '.join(map(str, table.planned(comparison.preset)))}; "
    facts += "margin " + (", ".join(f"{name} {value:g}" for name, value in table.margin.items()) or "none")
    chosen = wording.protocol(comparison)
    facts += f"; the paper scores the {chosen}" if chosen else ""
    facts += f"; needs {table.needs}" if table.needs else ""
    parts = [
        f'<section id="{anchor(comparison)}">\n<h3>{escape(tables.heading(comparison))}</h3>\n',
        f'<p class="facts">{escape(facts)}.</p>\n',
    ]
    for part, compared in (
        (tables.lines_of(comparison), comparison.numbers),
        (tables.claims_of(comparison), comparison.claims),
    ):
        if compared:
            parts.append(_table(*part, NUMERIC, compared))
    parts += [_ranking(text) for text in ranking_lines(comparison)]
    for title, svg in figures(comparison, results).items():
        parts.append(
            f'<figure role="img" aria-label="{escape(title)}">{svg}<figcaption>{escape(title)}</figcaption></figure>'
        )
    notes = "".join(f"<li>{escape(note)}</li>" for note in tables.footnotes(comparison))
    parts.append(f'<ul class="notes">{notes}</ul>\n' if notes else "")
    parts.append(_provenance(comparison.lines))
    return "".join(parts) + "</section>\n"


def _ranking(text: str) -> str:
    if text.startswith("- "):
        return "<ul>" + "".join(f"<li>{escape(line[2:])}</li>" for line in text.splitlines()) + "</ul>"
    return f"<p>{escape(text)}</p>"


def _table(headers: list[str], rows: Iterable[list[str]], numeric: set[str], compared: Iterable[Compared] = ()) -> str:
    runs = [" ".join(c.runs) for c in compared]
    head = "".join(f'<th scope="col"><button type="button">{escape(header)}</button></th>' for header in headers)
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
    kind = ' class="number"' if header in numeric else ""
    return f"<td{kind}>{escape(text)}</td>"


def _provenance(lines: Iterable[Line]) -> str:
    """Every run behind a table: what it was, where, when, with what code and at what cost."""
    rows = [[str(line.values.get(name, "")) for name in PROVENANCE] for line in lines]
    if not rows:
        return ""
    return f"<details><summary>{len(rows)} runs</summary>{_table(list(PROVENANCE), rows, NUMERIC)}</details>\n"
