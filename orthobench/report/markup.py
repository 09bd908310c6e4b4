"""Rows of text as Markdown, CSV and LaTeX, in which nothing that a record or a paper says is markup."""

import csv
import io
from collections.abc import Iterable


def markdown_table(headers: list[str], rows: Iterable[list[str]]) -> str:
    """A table in Markdown."""
    body = [headers, ["---"] * len(headers), *rows]
    return "".join("| " + " | ".join(md(cell) for cell in row) + " |\n" for row in body)


def md(text: str) -> str:
    """Text that Markdown, or HTML inside it, does not take for markup."""
    for plain, safe in (("\\", "\\\\"), ("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("|", "\\|"), ("*", "\\*")):
        text = text.replace(plain, safe)
    return " ".join(text.split())


def csv_table(headers: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Lines of CSV."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(headers)
    writer.writerows(map(no_formula, row) for row in rows)
    return text.getvalue()


def no_formula(text: str) -> str:
    """Text that a spreadsheet does not take for a formula; numbers stay numbers."""
    if not text.startswith(("=", "+", "-", "@", "\t", "\r")):
        return text
    try:
        float(text.replace(",", ""))
    except ValueError:
        return "'" + text
    return text


def latex_table(caption: str, headers: list[str], rows: Iterable[list[str]]) -> str:
    """A longtable."""
    columns = "".join("p{0.35\\textwidth}" if header == "claim" else "l" for header in headers)
    head = " & ".join(map(tex, headers)) + " \\\\ \\hline\n"
    body = "".join(" & ".join(map(tex, row)) + " \\\\\n" for row in rows)
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
