"""Numbers, headings, links and lists of runs in words, and the same document in three kinds of markup."""

import csv
import io
import re
from math import inf
from pathlib import Path

import pytest

from orthobench.report.document import Document, Grid, Section, of_table, runs, shortened
from orthobench.report.markup import csv_text, latex, markdown
from orthobench.report.quantities import Quantity, digits, exact, horizon, number, ranked, spread
from orthobench.report.site.collected import grid_lines
from orthobench.report.site.long_lists import table_rows
from orthobench.report.site.plots import LinkedCell, LinkedTable
from orthobench.study.catalogue import SHIPPED
from orthobench.study.verdicts.comparison import compare
from tests.report.made_up import made_up

MAIN = Grid(["model", "score"], [["a|b", "1_0"]], case="T=50")
BESIDE = Grid(["model", "rate"], [["a|b", "5 %"]], case="T=50", subject="by learning rate")
SECTION = Section(
    "fair-a",
    "A",
    "A (`fair/a`)",
    ("Track fair", "3 seeds"),
    "records/fair/a.csv",
    (MAIN, BESIDE),
    ("Words.",),
    ("x*y",),
)
DOCUMENT = Document("fair", "Introduction.\n", (SECTION, Section("b", "B", "B", ("none",))), MAIN)


@pytest.mark.parametrize(
    ("preset", "expected"),
    [
        ("full", ("scornn-table1", "Table 1", "Table 1 (`scornn/table1`)")),
        ("smoke", ("scornn-table1-smoke", "Table 1 (smoke)", "Table 1 (`scornn/table1`), shortened to smoke: train")),
    ],
)
def test_a_table_has_an_anchor_a_title_and_a_heading(
    preset: str, expected: tuple[str, str, str], tmp_path: Path
) -> None:
    section = of_table(compare(SHIPPED.table("scornn/table1"), tmp_path, preset))
    assert (section.anchor, section.title) == expected[:2]
    assert section.heading.startswith(expected[2])
    assert section.records is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [("scornn/figure2", "Figure 2"), ("fair/adding", "Adding"), ("fair/har2", "HAR-2, 4,000 steps")],
)
def test_a_table_has_a_title(name: str, expected: str) -> None:
    assert SHIPPED.table(name).title == expected


def test_what_shortens_a_table_is_said_where_anything_does() -> None:
    assert shortened("All tasks", "full") == "All tasks"
    assert shortened("All tasks", "short") == "All tasks, shortened to short"
    assert shortened("A", "short", ["a=1", "b=2"]) == "A, shortened to short: a=1 b=2"


def test_the_runs_behind_a_table() -> None:
    lines = [made_up("b", 1), made_up("a", 10), made_up("a", 2)]
    assert runs(lines) == {"b": ["task-model-b-1-full"], "a": ["task-model-a-2-full", "task-model-a-10-full"]}
    assert runs([]) == {}


def test_markdown() -> None:
    assert markdown(DOCUMENT) == (
        "# fair\n\nIntroduction.\n\n## A (`fair/a`)\n\nTrack fair; 3 seeds. [Records](../records/fair/a.csv)\n\n"
        "### T=50\n\n| model | score |\n| --- | --- |\n| a\\|b | 1_0 |\n\n"
        "*By learning rate*\n\n| model | rate |\n| --- | --- |\n| a\\|b | 5 % |\n\n"
        "Words.\n\n- x\\*y\n\n## B\n\nnone. No records yet.\n"
    )


def test_latex() -> None:
    text = latex(DOCUMENT)
    assert "\\caption{A (`fair/a`), T=50} \\\\" in text
    assert "\\caption{A (`fair/a`), T=50, by learning rate} \\\\" in text
    assert "a\\textbar{}b & 5 \\% \\\\" in text


def test_csv() -> None:
    assert list(csv.reader(io.StringIO(csv_text(DOCUMENT)))) == [["model", "score"], ["a|b", "1_0"]]


@pytest.mark.parametrize(
    ("length", "holes", "text"),
    [
        (160, (), "160"),
        (None, (), "none"),
        (1600, (10,), "1,600 but not 10"),
        (400, (50, 51, 100), "400 but not 50, 51 or 100"),
    ],
)
def test_a_horizon_tells_its_holes(length: int | None, holes: tuple[int, ...], text: str) -> None:
    assert str(horizon(length, holes)) == text
    assert horizon(length, holes).order == length


@pytest.mark.parametrize(
    ("cell", "text", "order"),
    [
        (Quantity(0.97104, 4, half=0.002, after="(n=5)"), "0.9710 ± 0.0020 (n=5)", 0.97104),
        (spread(0.9999, 4, (0.9998, 1.0002), (None, 1.0)), "0.9999 [0.9998, 1.0000]", 0.9999),
        (spread(-1.9e-14, 1, (-6.6, 6.6)), "0.0 ± 6.6", 0.0),
        (Quantity(None, 4, ends=(-1.0, 2.0)), "[-1.0000, 2.0000]", -1.0),
        (Quantity(None, 4, after="(n=0 of 5)"), "none (n=0 of 5)", None),
        (Quantity(4, of=5, ends=(0.376, 0.964)), "4/5 [0.38, 0.96]", 4),
        (Quantity(0.5, 2, to=0.75), "0.50 to 0.75", 0.5),
        (Quantity(0.5, 2, to=0.501), "0.50", 0.5),
        (Quantity(0.00001, 4), "1e-05", 0.00001),
        (Quantity(0.00001, 4, signed=True), "+0.0000", 0.00001),
        (Quantity(1200.0, ends=(800.0, inf)), "1,200 [800, beyond]", 1200.0),
        (Quantity(10240, before=">="), ">= 10,240", 10240),
        (Quantity(16000, written="≈ 16k"), "≈ 16k", 16000),
        (ranked((1, 8)), "1-8", 1),
        (ranked((3, 3)), "3", 3),
    ],
)
def test_a_number_is_read_and_sorted(cell: Quantity, text: str, order: float | None) -> None:
    assert str(cell) == text
    assert cell.order == order


def test_no_number_is_an_empty_cell() -> None:
    assert number(None, 4) == ranked(None) == ""


def test_a_page_has_the_numbers_by_which_a_column_is_sorted() -> None:
    cells = [Quantity(1200.0, half=3.0), 0.5, None, "words", Quantity(None, after="(n=0 of 5)"), exact(7), float("inf")]
    table = LinkedTable(["cell", "number"], [[LinkedCell("a"), LinkedCell(cell)] for cell in cells])
    lines = str(table_rows(table, "")).splitlines()
    assert [re.findall(r'data-value="(.*?)"', line) for line in lines] == [["1200.0"], ["0.5"], [], [], [], ["7"], []]
    assert ">1,200 ± 3</td>" in lines[0]


def test_the_lines_of_a_grid_are_texts_and_numbers() -> None:
    found = grid_lines(Grid(["cell", "score"], [["a", Quantity(0.5, 2, half=0.125)], ["b", ""]]))
    assert found["rows"] == [["a", "0.50 ± 0.12"], ["b", ""]]
    assert found["numbers"] == [[None, 0.5], [None, None]]


@pytest.mark.parametrize(
    ("value", "decimals", "text"),
    [
        (5.38e-5, 4, "5.4e-05"), (4.99e-4, 4, "0.0005"), (2.46e-4, 4, "0.00025"), (6.2e-4, 4, "0.0006"),
        (0.0, 4, "0.0000"), (0.032, 2, "0.03"), (0.004, 2, "0.004"), (0.094, 1, "0.1"), (1234.5, 1, "1,234.5"),
        (None, 2, ""),
    ],
)  # fmt: skip
def test_a_number_shows_enough_of_itself(value: float | None, decimals: int, text: str) -> None:
    assert digits(value, decimals) == text
