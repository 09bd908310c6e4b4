"""A document as Markdown, CSV and LaTeX, in which nothing that a record or a paper says is markup."""

import csv
import io
from collections.abc import Iterable

from orthobench.report.document import Document, Grid, Section


def markdown(document: Document) -> str:
    """The whole document; it is kept in results/tables, beside results/records."""
    return "\n".join([f"# {document.name}\n", document.introduction, *map(_markdown_section, document.sections)])


def csv_text(document: Document) -> str:
    """The data of a document as CSV, with no text that a spreadsheet would take for a formula."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(document.data.headers)
    writer.writerows(map(no_formula, row) for row in document.data.rows)
    return text.getvalue()


def latex(document: Document) -> str:
    """Every grid of a document as a longtable."""
    parts = [f"% {document.name}: written by `orthobench tables`; needs the package longtable\n"]
    for section in document.sections:
        for grid in filter(lambda grid: grid.rows, section.grids):
            length = grid.case
            caption = ", ".join(filter(None, (section.heading, length, grid.subject)))
            parts.append(_longtable(caption, grid))
    return "\n".join(parts)


def _markdown_section(section: Section) -> str:
    parts = []
    if section.facts:
        where = f"[Records](../{section.records})" if section.records else "No records yet."
        parts.append(f"{md('; '.join(section.facts))}. {where}\n")
    length = ""
    for grid in filter(lambda grid: grid.rows, section.grids):
        if grid.case != length:
            parts.append(f"### {grid.case}\n")
            length = grid.case
        if grid.subject:
            parts.append(f"*{md(grid.subject[0].upper() + grid.subject[1:])}*\n")
        parts.append(_markdown_table(grid))
    parts += [text + "\n" for text in section.paragraphs]
    if section.notes:
        parts.append("".join(f"- {md(note)}\n" for note in section.notes))
    return "\n".join([f"## {md(section.heading)}\n", *parts])


def _markdown_table(grid: Grid) -> str:
    lines: Iterable[list[str]] = [grid.headers, ["---"] * len(grid.headers), *grid.rows]
    return "".join("| " + " | ".join(map(md, line)) + " |\n" for line in lines)


def md(text: str) -> str:
    """Text that Markdown, or HTML inside it, does not take for markup."""
    for plain, safe in (("\\", "\\\\"), ("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("|", "\\|"), ("*", "\\*")):
        text = text.replace(plain, safe)
    return " ".join(text.split())


def no_formula(text: str) -> str:
    """Text that a spreadsheet does not take for a formula; numbers stay numbers."""
    if not text.startswith(("=", "+", "-", "@", "\t", "\r")):
        return text
    try:
        float(text.replace(",", ""))
    except ValueError:
        return "'" + text
    return text


def _longtable(caption: str, grid: Grid) -> str:
    columns = "".join("p{0.35\\textwidth}" if header == "claim" else "l" for header in grid.headers)
    head = " & ".join(map(tex, grid.headers)) + " \\\\ \\hline\n"
    body = "".join(" & ".join(map(tex, row)) + " \\\\\n" for row in grid.rows)
    return f"\\begin{{longtable}}{{{columns}}}\n\\caption{{{tex(caption)}}} \\\\\n{head}{body}\\end{{longtable}}\n"


def tex(text: str) -> str:
    """Text that LaTeX prints as it is."""
    special = {c: f"\\{c}" for c in "&%$#_{}"} | {"\\": "\\textbackslash{}", "~": "\\textasciitilde{}"}
    special |= {
        "^": "\\textasciicircum{}",
        "±": "$\\pm$",
        "|": "\\textbar{}",
        "<": "\\textless{}",
        ">": "\\textgreater{}",
    }
    return "".join(special.get(c, c) for c in text)
