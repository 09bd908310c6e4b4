"""Names that come from files are shown as they are and are nothing else: no command, formula, markup or link."""

import csv
import io
import os
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest

from orthobench.common.terminal import complain, say, visible
from orthobench.report import drawing
from orthobench.report.document import Document, Grid, Section
from orthobench.report.markup import csv_text, latex, markdown
from orthobench.report.site.collected import grid_lines
from orthobench.report.site.environment import environment, marked
from orthobench.report.site.places import Places

TERMINAL = (
    "\x1b[2J",
    "\x1b]0;title\x07",
    "\x1b]8;;http://x\x07a\x1b]8;;\x07",
    "\x1b[1A\x1b[2K done",
    "\x9b31m",
    "\x08" * 5,
    "a\rdone",
    "\x07",
    "\x00",
    "\x7f",
    "\x1bP+q\x1b\\",
    "\x1b(0",
    "\x0e",
    "\u202edone",
    "\u2066x\u2069",
    "\u200f",
    "\u2028x",
    "\ufeff",
    "\ud800",
    os.fsdecode(b"caf\xe9"),
    "\x85next",
    "\x0c",
    "\x0b",
    "\x1bc",
    "\x1b[6n",
)
FORMULAS = (
    "=1+1",
    "=cmd|'/c calc'!A1",
    "@SUM(1)",
    "+cmd|x",
    "-2+3+cmd|x",
    "\t=1+1",
    "\r=1+1",
    " =1+1",
    "\n=1+1",
    '=HYPERLINK("http://x")',
    "＝1+1",
    "＋1+x",
    "－1-x",
    "＠SUM(1)",
    '=IMPORTXML(CONCAT("http://x",A1),"//a")',
    "\ufeff=1+1",
    "+1-1",
    "@x",
)
MARKDOWN = (
    "[a](javascript:alert(1))",
    "![a](http://x/y.png)",
    "[a][b]",
    "[b]: http://x",
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "a | b",
    "a\n\n# heading",
    "# heading",
    "**bold**",
    "- item",
    "1. item",
    "```",
    "~~~",
    "a\n| --- |",
    "&lt;script&gt;",
    "\\",
    "<!--",
    "</td></tr></table>",
    "<a href=x>",
    "[x] [y](z)",
    "![](x)",
    "+ item",
)
LATEX = (
    "\\input{/etc/passwd}",
    "\\write18{rm}",
    "a & b \\\\ c",
    "$x",
    "%",
    "#1",
    "a_b^c",
    "{",
    "}",
    "~",
    "[c,r]",
    "*",
    "^^5cinput",
    "\n\n\\par",
    "\\end{longtable}",
    "\\catcode`\\@=0",
    "a\n%b",
    "[1cm]",
    "\\\\[",
    "\\iftrue",
    "\\csname x\\endcsname",
)
HTML = (
    "<script>alert(1)</script>",
    '" onclick="alert(1)',
    "' onclick='alert(1)",
    "<img src=x onerror=alert(1)>",
    "</style><script>",
    "&#60;script&#62;",
    "javascript:alert(1)",
    "</svg><script>",
    "<!--",
    "`<b>`",
    "*<i>*",
    "[<b>](<i>)",
    "{{ 7*7 }}",
    "{% raw %}",
    "<svg onload=alert(1)>",
    "]]><script>",
    "<base href=http://x>",
    "<meta http-equiv=refresh>",
    "\x1b<script>",
)
NAMES = (*TERMINAL, *FORMULAS, *MARKDOWN, *LATEX, *HTML)


def document(name: str) -> Document:
    grid = Grid(["row", name], [[name, "1"], ["plain", name]], case=name, subject=name or "x", caption=name)
    section = Section("anchor", name, name, (name,), None, (grid,), (f"- {' '.join(name.split())}",), (name,))
    return Document(name, "An introduction.", (section,), Grid(["row", name], [[name, "0.5"]]))


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_the_terminal(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    say(f"a {name} b")
    complain(f"a {name} b")
    told = capsys.readouterr()
    for text in (told.out, told.err):
        assert re.fullmatch(r"(?s)a .* b\n", text)
        assert not re.search(
            "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]", text
        )


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_csv(name: str) -> None:
    text = csv_text(document(name))
    text.encode()
    header, row = list(csv.reader(io.StringIO(text)))
    for cell in (header[1], row[0]):
        assert not re.match(r"\s*[=+@＝＋－＠]", cell)
        assert not cell.lstrip().startswith("-")
    assert row[1] == "0.5"


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_markdown(name: str) -> None:
    text = markdown(document(name))
    text.encode()
    assert not re.search(r"(?<!\\)\][(\[:]", text), "no link, image or definition"
    assert not re.search(r"<[A-Za-z/!?]", text), "no element"
    assert "\x1b" not in text
    lines = text.splitlines()
    assert sum(bool(re.match(r"#{1,6}\s", line)) for line in lines) == 3
    table = [line for line in lines if line.startswith("|")]
    assert len(table) == 4
    assert {len(re.findall(r"(?<!\\)\|", line.replace("\\\\", ""))) for line in table} == {3}


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_latex(name: str) -> None:
    text = latex(document(name))
    text.encode()
    ours = {"begin", "end", "caption", "hline", "item", "textbackslash", "textasciitilde", "textasciicircum", "textbar",
            "textless", "textgreater", "pm", "textwidth"}  # fmt: skip
    assert set(re.findall(r"\\([A-Za-z]+)", text)) <= ours
    assert not re.search(r"\\\\\s*[\[*]|\\item\s*\[", text.replace("\\\\ \\hline", "")), "no argument of ours"
    assert re.sub(r"\\[{}]", "", text).count("{") == re.sub(r"\\[{}]", "", text).count("}")
    assert all(line.startswith("%") for line in text.splitlines()[:1])
    assert sum(line.startswith("%") for line in text.splitlines()) == 1


def page(name: str) -> str:
    """A table of a paper in the site, with a name wherever one may stand."""
    (section,) = document(name).sections
    lines = [grid_lines(replace(grid, statuses=["partial", "partial"], details=[name, name])) for grid in section.grids]
    told = {"heading": name, "title": name, "facts": [name], "notes": [name], "paragraphs": section.paragraphs}
    table = {"name": "a/b", "preset": "full", "anchor": "a-b", "records": None, "grids": lines, **told}
    places = Places({"figures": {}, "tables": [], "runs": {}})
    about = {"root": "", "here": "", "menu": [], "written": name, "places": places, "plots": [], "title": name}
    paper = {"title": name, "introduction": name, "cite": [name]}
    shown = {"name": name, "paper": paper, "tables": [(table, None)], "told": name}
    return environment().get_template("paper.html").render(**about, **shown)


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_html(name: str) -> None:
    text = page(name)
    text.encode()
    assert text.count("<script") == page("x").count("<script")
    assert not re.search(
        r"<(img|a href=x|base|meta http-equiv=refresh|svg|b|i)[ >]", re.sub(r"(?s)<b>.*?</b></a>", "", text)
    )
    assert not re.search(r"<[^<>\"]*(\"[^\"]*\"[^<>\"]*)*\son\w+\s*=", text), "no handler"
    assert "\x1b" not in text
    assert "<script" not in marked(name)


@pytest.mark.sampled(4)
@pytest.mark.filterwarnings("ignore:Glyph")  # of a font
@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_a_figure(name: str) -> None:
    found = drawing.svg(drawing.lines({f"a {name}": [(1.0, 2.0), (2.0, 3.0)]}, name, name))
    ElementTree.fromstring(re.sub(r"<style>.*?</style>", "", found))


def test_what_is_plain_stays_plain() -> None:
    assert visible("NC-GRU [c,r], 5 % ± 0.2\n\té 数") == "NC-GRU [c,r], 5 % ± 0.2\n\té 数"
