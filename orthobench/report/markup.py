"""A document as Markdown, CSV and LaTeX, in which nothing that a record or a paper says is markup."""

import re
from textwrap import fill

from orthobench.common.terminal import visible
from orthobench.recording.files import as_csv
from orthobench.report.document import Document, Grid, Section
from orthobench.report.quantities import Quantity, Shown

WIDTH = 120
FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")  # how one begins
_LINK = re.compile(r"\]([(\[:])")
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_BLOCK = re.compile(r"#|~~~|```|[-+] |\d+[.)] ")


def markdown(document: Document) -> str:
    """The whole document; it is kept in results/tables, beside results/records."""
    return "\n".join([f"# {md(document.name)}\n", document.introduction, *map(_markdown_section, document.sections)])


def csv_text(document: Document) -> str:
    """The data of a document as CSV, with no text that a spreadsheet would take for a formula."""
    return as_csv(map(no_formula, document.data.headers), (map(no_formula, row) for row in document.data.rows))


def latex(document: Document) -> str:
    """Every grid of a document as a longtable, and the footnotes of each section as a list below."""
    parts = [f"% {tex(document.name)}: written by `orthobench tables`; needs the package longtable\n"]
    for section in document.sections:
        for grid in filter(lambda grid: grid.rows, section.grids):
            caption = ", ".join(filter(None, (section.heading, grid.case, grid.subject, grid.caption)))
            parts.append(_longtable(caption, grid))
        if section.notes:
            items = "".join(f"\\item {tex(note)}\n" for note in section.notes)
            parts.append(f"\\begin{{itemize}}\n{items}\\end{{itemize}}\n")
    return "\n".join(parts)


def _markdown_section(section: Section) -> str:
    parts = []
    if section.facts:
        where = f"[Records](../{section.records})" if section.records else "No records yet."
        parts.append(f"{md('; '.join(section.facts))}. {where}\n")
    case = ""
    for grid in filter(lambda grid: grid.rows, section.grids):
        if grid.case != case:
            parts.append(f"### {md(grid.case)}\n")
            case = grid.case
        if grid.subject:
            parts.append(f"*{md(grid.subject[0].upper() + grid.subject[1:])}*\n")
        parts.append((md(f"{grid.caption}:") + "\n\n" if grid.caption else "") + markdown_table(grid))
    parts += [_LINK.sub(r"]\\\1", _TAG.sub("&lt;", visible(text))) + "\n" for text in section.paragraphs]
    if section.notes:
        parts.append("".join(f"- {md(note)}\n" for note in section.notes))
    if section.runs:
        parts.append(_run_names(section.runs))
    return "\n".join([f"## {md(section.heading)}\n", *parts])


def markdown_table(grid: Grid) -> str:
    """A grid as a table of Markdown."""
    headers, rows = grid.narrow()
    lines = [headers, ["---"] * len(headers), *([str(cell) for cell in row] for row in rows)]
    return "".join("| " + " | ".join(map(md, line)) + " |\n" for line in lines)


def _run_names(found: dict[str, list[str]]) -> str:
    """The names of the runs by row, with what they have in common written once."""
    lines = []
    for label, names in found.items():
        common = names[0].rpartition("-")[0] + "-"
        common = common if len(names) > 1 and all(one.startswith(common) for one in names) else ""
        behind = f" {common}..." if common else ""
        text = f"- {md(label)}:{behind} {', '.join(one.removeprefix(common) for one in names)}"
        lines.append(fill(text, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False))
    return "Runs by row, in the order of their seeds:\n\n" + "\n".join(lines) + "\n"


def md(text: str) -> str:
    """Text that Markdown, or HTML inside it, does not take for markup."""
    for plain, safe in (("\\", "\\\\"), ("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("|", "\\|"), ("*", "\\*")):
        text = text.replace(plain, safe)
    text = _LINK.sub(r"]\\\1", " ".join(visible(text).split()))
    return f"\\{text}" if _BLOCK.match(text) else text


def no_formula(cell: Shown) -> str:
    """A cell that a spreadsheet takes for no formula: a number as it is, words that begin as one with an apostrophe."""
    text = visible(str(cell))
    is_number = isinstance(cell, Quantity) and not cell.written
    return text if is_number or not text.lstrip().startswith(FORMULA) else f"'{text}"


def _longtable(caption: str, grid: Grid) -> str:
    headers, rows = grid.narrow()
    columns = "".join("p{0.35\\textwidth}" if header == "claim" else "l" for header in headers)
    head = " & ".join(map(tex, headers)) + " \\\\ \\hline\n"
    body = "".join(" & ".join(tex(str(cell)) for cell in row) + " \\\\\n" for row in rows)
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
    text = " ".join(visible(text).split())
    start = f"{{{text[0]}}}" if text[:1] in ("[", "*") else ""  # what \\ and \item would read as theirs
    return start + "".join(special.get(c, c) for c in text[1 if start else 0 :])
