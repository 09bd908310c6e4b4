"""results/report.html: every table, figure and footnote on one page that needs nothing else, not even a network.

All text goes through `html.escape`; the page's policy lets nothing in but its own style, script and figures.
"""

from collections import Counter
from html import escape
from pathlib import Path

from orthobench.analysis.comparison import Comparison
from orthobench.analysis.fair import contests
from orthobench.analysis.published import papers
from orthobench.analysis.statistics import STATUSES
from orthobench.analysis.ucr import ranking_lines
from orthobench.config.table import FULL
from orthobench.report import html_fair, html_parts, wording
from orthobench.report import write as tables
from orthobench.report.figures import figures
from orthobench.report.page import SCRIPT, STYLE

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def page(results: Path, folders: tuple[Path, ...] = ()) -> str:
    """The whole page."""
    found = {paper: tables.comparisons(paper, results, folders) for paper in papers(folders)}
    contents = "".join(_contents(paper, comparisons) for paper, comparisons in found.items())
    parts = "".join(_paper(paper, comparisons, results) for paper, comparisons in found.items())
    fair = contests(results, folders)
    contents, parts = contents + html_fair.contents(fair), parts + html_fair.part(fair)
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
    return text + html_parts.table(["paper", *STATUSES, "all"], rows, set(STATUSES) | {"all"})


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
    parts = [html_parts.facts(f"{facts}.")]
    for part, compared in (
        (tables.lines_of(comparison), comparison.numbers),
        (tables.claims_of(comparison), comparison.claims),
    ):
        if compared:
            parts.append(html_parts.table(*part, html_parts.NUMERIC, compared))
    parts += [_ranking(text) for text in ranking_lines(comparison)]
    parts.append(html_parts.drawn(figures(comparison, results)))
    parts.append(html_parts.notes(tables.footnotes(comparison)))
    parts.append(html_parts.provenance(comparison.lines))
    return html_parts.section(anchor(comparison), tables.heading(comparison), parts)


def _ranking(text: str) -> str:
    if text.startswith("- "):
        return "<ul>" + "".join(f"<li>{escape(line[2:])}</li>" for line in text.splitlines()) + "</ul>"
    return f"<p>{escape(text)}</p>"
