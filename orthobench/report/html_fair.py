"""The fair track's part of the page, apart from the published tables."""

from html import escape

from orthobench.analysis.fair import Contest
from orthobench.config.table import FAIR, FULL
from orthobench.report import fair as fair_tables
from orthobench.report import html_parts
from orthobench.report.fair_figures import figures

TEXT = {"model", "rate", "chosen"}


def contents(found: list[Contest]) -> str:
    """Links to the tables."""
    links = []
    for contest in found:
        preset = "" if contest.preset == FULL else f" ({contest.preset})"
        title = contest.title + preset
        links.append(f'<li><a href="#{anchor(contest)}">{escape(title)}</a></li>')
    return f'<p><a href="#{FAIR}"><b>{FAIR}</b></a></p><ul>{"".join(links)}</ul>'


def part(found: list[Contest]) -> str:
    """All tables, after an overview of each preset."""
    parts = [f'<h2 id="{FAIR}">{FAIR}</h2>\n', html_parts.facts(fair_tables.INTRODUCTION.replace("*", ""))]
    for preset, group in fair_tables.by_preset(found).items():
        headers, rows = fair_tables.overview_of(group)
        if rows:
            title = "All tasks" + ("" if preset == FULL else f", shortened to {preset}")
            parts.append(html_parts.section(f"{FAIR}-{preset}", title, [_table(headers, rows)]))
        parts += [_section(contest) for contest in group]
    return "".join(parts)


def anchor(contest: Contest) -> str:
    """The name that links to a table."""
    name = contest.table.name.replace("/", "-")
    return name if contest.preset == FULL else f"{name}-{contest.preset}"


def _section(contest: Contest) -> str:
    parts = [html_parts.facts(fair_tables.facts(contest) + (". No records yet." if not contest.lines else "."))]
    for length in contest.lengths:
        parts.append(f"<h4>T = {escape(length)}</h4>\n" if length else "")
        parts.append(_table(*fair_tables.lines_of(contest, length)))
        sensitivity = _table(*fair_tables.sensitivity_of(contest, length))
        parts.append(f"<details><summary>by learning rate</summary>{sensitivity}</details>\n")
    parts.append(html_parts.drawn(figures(contest)))
    parts.append(html_parts.notes(contest.table.deviations))
    parts.append(html_parts.provenance(contest.lines))
    return html_parts.section(anchor(contest), fair_tables.heading(contest), parts)


def _table(headers: list[str], rows: list[list[str]]) -> str:
    return html_parts.table(headers, rows, set(headers) - TEXT)
