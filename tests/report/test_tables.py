"""Published beside ours: what a table shows for made-up records, and that rendering is a function of them."""

import csv
import io
import re
from dataclasses import replace
from pathlib import Path

import pytest

from orthobench import __version__
from orthobench.report import markup, paper, tables
from orthobench.report.quantities import Quantity
from orthobench.study.catalogue import SHIPPED
from orthobench.study.records import records
from orthobench.study.records.records import Line
from orthobench.study.statistics.status import (
    AGREES,
    BETTER,
    DIFFERS,
    NOT_REPRODUCED,
    NOT_RUN,
    PARTIAL,
    REPRODUCED,
    UNDERSPECIFIED,
    UNSTABLE,
)
from orthobench.study.verdicts.comparison import Compared, compare
from tests.conftest import REPO
from tests.report.made_up import made_up, record

ACCURACY = "MNIST Test Accuracy"


def found(results: Path, name: str, row: str, column: str, preset: str = "full") -> Compared:
    comparison = compare(SHIPPED.table(name), results, preset)
    (one,) = [c for c in comparison.numbers if (c.printed.label, c.printed.column) == (row, column)]
    return one


def mnist(*accuracies: float | None, preset: str = "full", cell: str = "scornn_170_mnist") -> list[records.Line]:
    return [
        made_up(cell, seed, preset, best_test___test__accuracy=value, best_val___test__accuracy=value - 0.002,
                last___test__accuracy=value - 0.004, parameters__total=16415)
        if value is not None
        else made_up(cell, seed, preset, diverged=True, parameters__total=16415)
        for seed, value in enumerate(accuracies, start=1)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("accuracies", "status"),
    [
        ([0.972, 0.974, 0.973, 0.971, 0.975], REPRODUCED),
        ([0.980, 0.981, 0.980, 0.981, 0.980], BETTER),
        ([0.960, 0.961, 0.960, 0.961, 0.960], NOT_REPRODUCED),
        ([0.972, 0.974], PARTIAL),
        ([0.972, 0.974, 0.973, None, None], UNSTABLE),
        ([], NOT_RUN),
    ],
)
@pytest.mark.sampled(2)
def test_a_cell_has_the_status_of_its_seeds(accuracies: list[float | None], status: str, tmp_path: Path) -> None:
    record(tmp_path, "scornn/table1", mnist(*accuracies))
    stated = compare(replace(SHIPPED.table("scornn/table1"), unstated={}), tmp_path)
    (one,) = [c for c in stated.numbers if (c.printed.label, c.printed.column) == ("scoRNN n=170", ACCURACY)]
    assert one.verdict.word == status
    as_it_is = found(tmp_path, "scornn/table1", "scoRNN n=170", ACCURACY).verdict.word
    assert as_it_is == (UNDERSPECIFIED if status in (BETTER, NOT_REPRODUCED) else status), "the batch is not stated"


def test_both_selections_stand_side_by_side(tmp_path: Path) -> None:
    record(tmp_path, "scornn/table1", mnist(0.972, 0.974, 0.973, 0.971, 0.975))
    grid = paper.numbers(compare(SHIPPED.table("scornn/table1"), tmp_path))
    line = dict(zip(grid.headers, map(str, grid.rows[0]), strict=True))
    assert (line["published"], line["paper's runs"], line["trivial"]) == ("0.973", "1, best test", "0.1135")
    assert line["ours, best validation"] == "0.9710 ± 0.0020 (n=5)"
    assert line["ours, last"] == "0.9690 ± 0.0020 (n=5)"
    assert line["same protocol"].startswith("0.9730 [0.968")
    last = [line[key] for key in ("difference", "status", "converged", "runs")]
    assert last == ["+0.0000", "reproduced", "5/5", "5 [a]"]
    sizes = paper.counts(compare(SHIPPED.table("scornn/table1"), tmp_path))
    assert list(map(str, sizes.rows[0])) == ["scoRNN n=170", "# parameters", "≈ 16k", "16,415", "count equal"]
    assert sizes.runs[0] == (), "no run is needed for it"


def test_every_row_says_what_is_behind_it_before_any_of_its_seeds_has_run(tmp_path: Path) -> None:
    cell = "scornn_170_mnist"
    record(tmp_path, "scornn/table1", [made_up(cell, seed, last___test__accuracy=0.97) for seed in range(11, 16)])
    comparison = compare(SHIPPED.table("scornn/table1"), tmp_path)
    assert f"Other seeds of {cell} count once those of the table are recorded." in comparison.notes
    grid = paper.numbers(comparison)
    shown = [dict(zip(grid.headers, map(str, row), strict=True)) for row in grid.rows]
    assert {line["trivial"] for line in shown} == {"0.1135"}
    assert {line["paper's runs"] for line in shown} == {"1, best test"}
    assert {line["ours, last"] for line in shown} == {""}


def test_an_interval_of_accuracies_ends_where_they_do(tmp_path: Path) -> None:
    lines = [made_up("sgornn", seed, last___test__accuracy=1 - 0.0001 * (seed % 2)) for seed in range(1, 4)]
    record(tmp_path, "sgornn/table2", lines)
    grid = paper.numbers(compare(SHIPPED.table("sgornn/table2"), tmp_path))
    assert str(grid.rows[1][grid.headers.index("ours, last")]) == "99.99 [99.97, 100.00] (n=3)", (
        "2,947 windows resolve no more"
    )


@pytest.mark.slow
def test_the_code_behind_a_number_stands_beside_it_in_every_format(tmp_path: Path) -> None:
    clean, changed = ({"git": "a" * 40, "dirty": dirty} for dirty in ("False", "True"))
    codes = [clean, changed, {"version": "0.0.1"}, {"git": "b" * 40, "version": "0.0.1"}, clean]
    lines = [Line(line.values | code) for line, code in zip(mnist(*[0.973] * 5), codes, strict=True)]
    record(tmp_path, "scornn/table1", lines)
    words = {
        "commit aaaaaaaaaa",
        "commit aaaaaaaaaa with local changes",
        f"version 0.0.1 where this is {__version__}",
        "commit bbbbbbbbbb",
    }
    texts = tables.render("scornn", tmp_path, suffixes=("md", "csv", "tex"))
    for text in (texts["md"], texts["tex"]):
        assert "5 [a, b, c, d]" in text
        assert set(re.findall(r"[a-d](?:\]|\\\]) made by ([^\n<]*)", text)) == words
    found = [line for line in csv.DictReader(io.StringIO(texts["csv"])) if line["made by"]]
    assert {line["kind"] for line in found} == {"number", "claim"}
    for line in found:
        assert set(line["made by"].split("; ")) == words
        assert (line["runs"], len(line["run ids"].split())) == ("5", 5)


def test_other_data_of_one_row_and_data_without_a_digest_are_told(tmp_path: Path) -> None:
    by = "made by version unknown"

    def told(*lines: Line) -> list[str]:
        record(tmp_path, "scornn/table1", list(lines))
        notes = paper.footnotes(compare(SHIPPED.table("scornn/table1"), tmp_path))[:2]
        return sorted(note.partition("] ")[2] for note in notes)

    first, second = (Line(line.values | {"data": n * 64}) for line, n in zip(mnist(0.9, 0.9), "12", strict=True))
    assert told(first, second) == [f"{by} on the data {digest * 10}, other seeds on others" for digest in "12"]
    assert told(first, *mnist(0.9, cell="lstm_128_mnist")) == [by, f"{by} on data of which no digest was recorded"]


@pytest.mark.slow
def test_the_names_of_the_runs_stand_below(tmp_path: Path) -> None:
    record(tmp_path, "scornn/table1", mnist(0.973, 0.974))
    ids = [line.run_id for line in records.read(tmp_path, "scornn/table1")]
    text = tables.render("scornn", tmp_path)["md"]
    assert "- scornn_170_mnist: mnist-scornn-... " in text
    assert all(name.rpartition("-")[2] in text for name in ids)


@pytest.mark.parametrize("paper", SHIPPED.papers())
def test_lines_of_committed_tables_can_be_read(paper: str) -> None:
    text = (REPO / "results" / "tables" / f"{paper}.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| ") and "| claim |" not in line]
    scores = [line for line in rows if line.count("|") > 7]
    assert max(map(len, scores)) <= 180


def test_a_diverged_seed_stays_in_the_denominator(tmp_path: Path) -> None:
    record(tmp_path, "scornn/table1", mnist(0.972, 0.974, 0.973, 0.971, None))
    grid = paper.numbers(compare(SHIPPED.table("scornn/table1"), tmp_path))
    line = dict(zip(grid.headers, map(str, grid.rows[0]), strict=True))
    assert line["converged"] == "4/5 [0.38, 0.96]"
    assert line["same protocol"] == "0.9725 (n=4 of 5)", "no interval beside it"
    assert line["status"] == "unstable (1 of 5)"


@pytest.mark.slow
def test_a_shortened_run_fills_no_cell_of_the_full_table(tmp_path: Path) -> None:
    record(tmp_path, "scornn/table1", mnist(0.972, 0.974, 0.973, 0.971, 0.975, preset="smoke"))
    assert found(tmp_path, "scornn/table1", "scoRNN n=170", ACCURACY).verdict.word == NOT_RUN
    short = compare(SHIPPED.table("scornn/table1"), tmp_path, "smoke")
    grid = paper.numbers(short)
    assert "status" not in grid.headers
    assert "shortened to smoke: trainer.max_steps=2" in paper.section(short).heading
    assert str(grid.rows[0][grid.headers.index("same protocol")]).startswith("0.973")
    text = tables.render("scornn", tmp_path)["md"]
    assert text.index("## Table 1 (`scornn/table1`)\n") < text.index("## Table 1 (`scornn/table1`), shortened to smoke")


def test_percentages_are_compared_as_printed(tmp_path: Path) -> None:
    lines = [made_up("sgornn", seed, last___test__accuracy=0.94 + seed / 5000) for seed in range(1, 11)]
    record(tmp_path, "sgornn/table2", lines)
    one = found(tmp_path, "sgornn/table2", "SGORNN", "Test Accuracy")
    assert one.ours == pytest.approx(94.11)
    assert one.verdict.word == REPRODUCED


def test_the_greatest_length_that_is_learnt(tmp_path: Path) -> None:
    loss = {500: 0.001, 1000: 0.12, 5000: 0.167}
    lines = [
        made_up(f"vprnn_{T}", seed, last___test__loss=value, parameters__total=1409)
        for T, value in loss.items()
        for seed in (1, 2, 3)
    ]
    record(tmp_path, "sgornn/table1", lines)
    one = found(tmp_path, "sgornn/table1", "VPRNN", "Max Sequence Length")
    assert (one.ours, one.verdict.word) == (1000, REPRODUCED)
    record(tmp_path, "sgornn/table1", lines[:4])
    assert found(tmp_path, "sgornn/table1", "VPRNN", "Max Sequence Length").verdict.word == PARTIAL


@pytest.mark.parametrize(
    ("diverged", "ours", "word"),
    [
        ((1000, 5000), 1000, REPRODUCED),
        pytest.param((500, 1000, 5000), 500, DIFFERS, marks=pytest.mark.slow),
        pytest.param((), None, DIFFERS, marks=pytest.mark.slow),
    ],
)
def test_the_first_length_that_diverges(
    diverged: tuple[int, ...], ours: float | None, word: str, tmp_path: Path
) -> None:
    """The paper's FastRNN explodes first at 1000; of another length neither side is better."""
    lines = [
        made_up(f"fastrnn_{T}", seed, diverged=T in diverged, last___test__loss=0.1)
        for T in (500, 1000, 5000)
        for seed in SHIPPED.table("sgornn/table1").seeds
    ]
    record(tmp_path, "sgornn/table1", lines)
    one = found(tmp_path, "sgornn/table1", "FastRNN", "Exploding Gradients")
    assert (one.ours, one.verdict.word) == (ours, word)


def test_bounds_orders_of_magnitude_and_lost_numbers(tmp_path: Path) -> None:
    seeds = (1, 2, 3)
    values = {"jacobian__min@min": 10.0001, "jacobian__max@max": 10.1}
    record(tmp_path, "urnn_ugru/table6", [made_up("urnn_abs", seed, **values) for seed in seeds])
    assert found(tmp_path, "urnn_ugru/table6", "Lower", "|x|").verdict.word == REPRODUCED
    assert found(tmp_path, "urnn_ugru/table6", "Upper", "|x|").verdict.word == NOT_REPRODUCED
    gradients = [made_up("scornn", s, **{"hidden_gradient__1@0": 0.008 + s / 500}) for s in range(1, 6)]
    record(tmp_path, "scornn/figure5", gradients)
    assert found(tmp_path, "scornn/figure5", "scoRNN, start", "t=1").verdict.word == REPRODUCED
    gradients[2].values["hidden_gradient/1@0"] = 0.0
    record(tmp_path, "scornn/figure5", gradients)
    rounded = found(tmp_path, "scornn/figure5", "scoRNN, start", "t=1")
    assert rounded.verdict.word == AGREES, "a number that is rounded to 0 is no seed that diverged"
    assert rounded.interval is not None
    assert 0 <= rounded.interval[0] < rounded.ours < rounded.interval[1]  # type: ignore[operator]
    record(tmp_path, "ncgru/table5", [made_up("lstm", seed, best_val___test__bpc=1.4) for seed in seeds])
    assert found(tmp_path, "ncgru/table5", "LSTM", "bpc").verdict.word == UNDERSPECIFIED


def test_a_contradicted_claim_stands_in_the_first_line(tmp_path: Path) -> None:
    table = SHIPPED.table("urnn_ugru/table3")
    facts = paper.section(compare(table, REPO / "results")).facts
    assert facts[-1].startswith("contradicted here: uRNN's training was stopped early")
    assert not any("contradicted" in fact for fact in paper.section(compare(table, tmp_path)).facts)


@pytest.mark.slow
def test_ranks_over_the_data_sets(tmp_path: Path) -> None:
    table = SHIPPED.table("spectral_rnn/table4")
    scores = {cell: 0.5 + 0.1 * cell.startswith("spectral") + i / 1000 for i, cell in enumerate(table.trained())}
    of_all = {"best_val___val__accuracy": 0.5, "best_val___val__loss": 0.5}
    lines = [made_up(cell, 1, "smoke", best_val___test__accuracy=score, **of_all) for cell, score in scores.items()]
    record(tmp_path, "spectral_rnn/table4", lines)
    text = tables.render("spectral_rnn", tmp_path)["md"]
    assert "Mean ranks, published, over 21 data sets: Spectral-RNN 1.45, oRNN" in text
    assert "Mean ranks, ours, over 21 data sets, 21 of them with fewer seeds than planned: Spectral-RNN 1.00" in text


@pytest.mark.parametrize("paper", SHIPPED.papers())
@pytest.mark.slow
def test_the_same_records_give_the_same_bytes(paper: str, tmp_path: Path) -> None:
    record(tmp_path, "scornn/table1", mnist(0.972, 0.974, 0.973))
    assert tables.render(paper, tmp_path) == tables.render(paper, tmp_path)


@pytest.mark.slow
def test_the_committed_tables_are_what_the_records_say() -> None:
    assert not tables.stale(REPO / "results", tables.parts()), "run `orthobench tables`"


@pytest.mark.slow
def test_a_stale_table_is_noticed(tmp_path: Path) -> None:
    parts = ("scornn", "sgornn")
    assert len(tables.write(tmp_path, parts)) == 2 * len((*parts, "fair"))
    assert tables.write(tmp_path, parts) == []
    assert not list((tmp_path / "tables").glob("*.tex"))
    assert {path.suffix for path in tables.write(tmp_path, parts, suffixes=tables.LATEX)} == {".tex"}
    record(tmp_path, "scornn/table1", mnist(0.972))
    assert {path.name for path in tables.stale(tmp_path, parts)} == {"scornn.md", "scornn.csv"}
    assert [path.name for path in tables.stale(tmp_path, parts, suffixes=tables.LATEX)] == ["scornn.tex"]


@pytest.mark.slow
def test_footnotes_tell_the_deviations_of_table_and_recipes(tmp_path: Path) -> None:
    notes = paper.footnotes(compare(SHIPPED.table("scornn/figure1"), tmp_path))
    assert notes[-2].startswith("Optimizers and rates of the other models are their authors' scripts'")
    assert notes[-1].startswith("scornn/copying, lstm/copying, urnn_restricted/copying, urnn_full/copying: The marker")
    assert any("The two halves" in note for note in paper.footnotes(compare(SHIPPED.table("scornn/figure2"), tmp_path)))
    kept = paper.footnotes(compare(SHIPPED.table("ncgru/table3"), tmp_path))
    assert not any("The two halves" in note for note in kept), "the table has variant=paper"
    assert any(note.startswith("ncgru/adding: The Neumann series") for note in kept)


def test_footnotes_tell_what_the_paper_leaves_out() -> None:
    assert paper.unstated(SHIPPED.table("scornn/table3")) == ["Not stated in the paper: batch."]
    assert paper.unstated(SHIPPED.table("urnn_ugru/table7")) == [
        "Not stated in the paper for gru_35: length of the windows.",
        "Not stated in the paper for ugru_35: length of the windows, start of B.",
        "Not stated in the paper for ugru_150: start of B.",
    ]


@pytest.mark.parametrize("name", ["=cmd()", "+1|x", "@x", "-x"])
def test_a_name_is_no_formula_and_markup_is_text(name: str) -> None:
    assert markup.no_formula(name) == f"'{name}"
    assert markup.no_formula(Quantity(-0.002, 4, half=0.0044)) == "-0.0020 ± 0.0044"
    assert markup.no_formula(Quantity(1024, signed=True)) == "+1,024"
    assert markup.no_formula(Quantity(-1, written="-1 [=A1]")) == "'-1 [=A1]", "as a file says that it was printed"
    assert markup.md("<script>|x|</script> a*b") == "&lt;script&gt;\\|x\\|&lt;/script&gt; a\\*b"
    assert markup.tex("50% of_it & more") == "50\\% of\\_it \\& more"
