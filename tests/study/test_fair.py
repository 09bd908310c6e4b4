"""The fair track from made-up records: what is reported, ranks, horizons, curves, and tables that never change."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from matplotlib.text import Annotation

from orthobench.__main__ import main
from orthobench.errors import StorageError
from orthobench.report import drawing, fair, tables
from orthobench.report.fair_figures import _apart, figures, front
from orthobench.study.catalogue import SHIPPED, Catalogue
from orthobench.study.records import records
from orthobench.study.tables.composed import ComposedTable
from orthobench.study.verdicts.fair import FairTable, fair_table, fair_tables
from orthobench.study.verdicts.fair_entry import FairEntry
from tests.report.made_up import made_up, record

NAME, CUED = "fair/adding", "fair/cued_copying"
RATES = ("3e-2", "1e-2", "3e-3", "1e-3", "3e-4")
TUNING, SEEDS = (101, 102), (1, 2, 3, 4, 5)


def tuned(
    model: str,
    case: str,
    best: str,
    ratios: tuple[str, ...] = ("",),
    metric: str = "loss",
    ends: tuple[float, float] = (0.01, 1.0),
) -> list[records.Line]:
    """Both tuning runs of every rate, of which one is the best by what it scored in validation; the best, the rest."""
    scores = {r + x: ends[r + x != best] for r in RATES for x in ratios}
    name = f"best_val___val__{metric}"
    return [made_up(f"{model}{case}_lr{r}", s, **{name: score}) for r, score in scores.items() for s in TUNING]


def run(model: str, T: int, rate: str, seed: int, test: float, **more: Any) -> records.Line:
    scores = {"steps": 2000, "best_val___test__loss": test, "parameters__total": 4000, "baseline__loss": 1 / 6}
    return made_up(f"{model}_T{T}_lr{rate}", seed, **(scores | more))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lines = tuned("lstm", "_T50", "1e-2") + tuned("gru", "_T50", "3e-3") + tuned("rnn", "_T50", "1e-3")
    lines += tuned("irnn", "_T50", "1e-3") + tuned("fastrnn", "_T50", "1e-3")[:-1]
    lines += [run("lstm", 50, "1e-2", s, 0.004 + s / 1000, crossed__tenth=100 * s) for s in SEEDS]
    lines += [run("lstm", 50, "1e-3", s, 0.0) for s in SEEDS]
    lines += [run("gru", 50, "3e-3", s, 0.006 + s / 1000, crossed__tenth=700) for s in SEEDS[:3]]
    lines += [run("irnn", 50, "1e-3", s, 0.16 + s / 100) for s in SEEDS]
    lines += [run("rnn", 50, "1e-3", s, 0.001, diverged=s > 3) for s in SEEDS]
    root = tmp_path_factory.mktemp("recorded")
    record(root, NAME, lines)
    return root


@pytest.fixture
def results(recorded: Path, tmp_path: Path) -> Path:
    """A copy that a test may change."""
    return shutil.copytree(recorded, tmp_path / "results")


def pictures(found: dict[str, Any]) -> dict[str, str]:
    return {title: drawing.svg(figure) for title, figure in found.items()}


def entry(found: FairTable, model: str, case: str) -> FairEntry:
    (one,) = [e for e in found.entries if (e.model, e.case) == (model, case)]
    return one


@pytest.mark.slow
def test_the_code_behind_the_numbers_stands_beside_them(tmp_path: Path) -> None:
    """Two commits made the runs of the LSTM, one those of the GRU."""
    lines = tuned("lstm", "_T50", "1e-2") + tuned("gru", "_T50", "1e-2")
    lines += [run(model, 50, "1e-2", s, at + s / 1000) for model, at in (("lstm", 0.1), ("gru", 0.2)) for s in SEEDS]
    commits = ["b" if "lstm" in line.row and line.seed == 3 else "a" for line in lines]
    made = [records.Line(line.values | {"git": by * 40}) for line, by in zip(lines, commits, strict=True)]
    record(tmp_path, NAME, made)
    found = fair_table(SHIPPED.table(NAME), tmp_path)
    runs = {row[0]: str(row[fair.HEADERS.index("runs")]) for row in fair.models(found, "T=50").rows}
    letters = dict.fromkeys(found.made_by.letters.values())
    assert list(letters) == ["a", "b"]
    assert runs["lstm"] == "10 + 5 of 5 [a, b]"
    assert runs["gru"] in ("10 + 5 of 5 [a]", "10 + 5 of 5 [b]")
    notes = fair.section(found).notes
    assert {n[12:] for n in notes if n[4:].startswith("made by")} == {"commit aaaaaaaaaa", "commit bbbbbbbbbb"}
    data = fair.document_of(tmp_path).data
    rows = {row[data.headers.index("model")]: row[data.headers.index("made by")] for row in data.rows}
    assert sorted(rows["lstm"].split("; ")) == ["commit aaaaaaaaaa", "commit bbbbbbbbbb"]


def test_what_is_reported_are_other_seeds_at_the_chosen_rate(results: Path) -> None:
    lstm = entry(fair_table(SHIPPED.table(NAME), results), "lstm", "T=50")
    assert lstm.rate == "1e-2", "though the reported seeds of 1e-3 are better"
    assert sorted(lstm.scores().by_seed) == list(SEEDS)
    assert lstm.mean == pytest.approx(0.007)
    low, high = lstm.interval or (0.0, 0.0)
    half = 2.776 * 0.001581 / 5**0.5
    assert (low, high) == pytest.approx((0.007 - half, 0.007 + half), rel=1e-3)


def test_what_is_to_be_run_next(results: Path) -> None:
    found = fair_table(SHIPPED.table(NAME), results, cells=("lstm", "gru", "fastrnn", "scornn"))
    due = found.due(("lstm", "gru", "fastrnn"))
    assert due["gru_T50_lr3e-3"] == (4, 5), "the seeds that are still to be reported"
    assert due["fastrnn_T50_lr3e-4"] == (102,), "the tuning comes first"
    assert not any(row.startswith("fastrnn_T50") for row in due.keys() - {"fastrnn_T50_lr3e-4"})
    assert not any(row.startswith("lstm_T50") for row in due)
    assert due["lstm_T100_lr3e-4"] == TUNING
    assert not any("x0.1" in row for row in due), "none of the three has constrained parameters"
    assert found.due(("scornn",))["scornn_T100_lr1e-2x0.1"] == TUNING


def test_ranks_only_where_intervals_are_apart(results: Path) -> None:
    found = fair_table(SHIPPED.table(NAME), results)
    assert found.ranks("T=50") == {"lstm": (1, 2), "gru": (1, 2)}, "their intervals overlap"
    assert entry(found, "irnn", "T=50").learnt is False, "0.19 is no better than the trivial 1/6"
    assert entry(found, "rnn", "T=50").learnt is None, "two of its seeds diverged"
    gru = [run("gru", 50, "3e-3", s, 0.1 + s / 1000) for s in SEEDS]
    record(results, NAME, [*(line for line in records.read(results, NAME) if "gru" not in line.row), *gru])
    record(results, NAME, [*records.read(results, NAME), *tuned("gru", "_T50", "3e-3")])
    assert fair_table(SHIPPED.table(NAME), results).ranks("T=50") == {"lstm": (1, 1), "gru": (2, 2)}


def test_the_survivors_of_a_model_say_nothing_about_it(results: Path) -> None:
    """Three of five seeds of the RNN end with the best score of all."""
    found = fair_table(SHIPPED.table(NAME), results)
    rnn = entry(found, "rnn", "T=50")
    assert rnn.scores().mean == 0.001
    assert (rnn.mean, rnn.interval, found.normalised(rnn)) == (None, None, None)
    assert "rnn" not in found.ranks("T=50")


def test_every_case_has_the_resolution_of_its_own_test_set(tmp_path: Path) -> None:
    """Five equal scores of a hundred test sequences say less than those of ten thousand."""
    path = tmp_path / "experiment" / "mine" / "sizes.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(
        "description: Mine\ntrack: fair\nseeds: [1, 2]\nmargin: {}\nscore: test/score\npresets: {}\n"
        "tuning: {seeds: [101], lr: [3e-2, 1e-2, 3e-3, 1e-3, 3e-4], ratio: [1]}\n"
        "common: [task=cued_copying, recipe=none, trainer.max_steps=5]\n"
        "cells: {gru: [model=gru, model.hidden_size=0.8e1]}\n"
        "grid: {size: {large: [task.test_size=10000], small: [task.test_size=100]}}\n"
    )
    table = Catalogue((tmp_path,)).table("mine/sizes")
    composed = ComposedTable(table)
    lines = [
        records.Line({"run_id": composed.settings(row, 101).run_id, "preset": "full", "cell": row, "seed": 101,
                      "status": "done", "best_val:val/score": 0.5})
        for row in table.rows
    ]  # fmt: skip
    records.write(tmp_path, table.name, lines)
    entries = fair_table(table, tmp_path).entries
    found = {entry.case: entry.resolution for entry in entries}
    assert found["size=small"] == pytest.approx(100 * found["size=large"])
    assert {entry.hidden_size for entry in entries} == {8}, "however it is written"


def test_equal_seeds_have_an_interval_of_what_the_test_set_resolves(tmp_path: Path) -> None:
    """Five seeds with one accuracy are not told from others that are a twentieth of the 2,947 test windows apart."""
    lines = []
    for model, accuracy in (("lstm", 1.0), ("gru", 1.0 - 0.05 / 2947)):
        lines += tuned(model, "", "1e-2", metric="accuracy", ends=(0.9, 0.1))
        scored = {"best_val___test__accuracy": accuracy, "baseline__accuracy": 0.5}
        lines += [made_up(f"{model}_lr1e-2", s, **scored) for s in SEEDS]
    record(tmp_path, "fair/har2", lines)
    found = fair_table(SHIPPED.table("fair/har2"), tmp_path)
    low, high = entry(found, "lstm", "").interval or (0.0, 0.0)
    assert high == 1.0, "where the metric ends"
    assert high - low == pytest.approx(2.7764 / 12**0.5 / 2947 / 5**0.5, rel=1e-3)
    assert found.ranks("") == {"gru": (1, 2), "lstm": (1, 2)}
    shown = {row[0]: str(row[fair.HEADERS.index("test")]) for row in fair.models(found, "").rows}
    assert shown["lstm"] == "1.0000 [0.9999, 1.0000]"


def test_models_stand_by_their_score(results: Path) -> None:
    found = fair_table(SHIPPED.table(NAME), results)
    grid = fair.models(found, "T=50")
    lines = {row[0]: dict(zip(grid.headers, map(str, row), strict=True)) for row in grid.rows}
    assert list(lines) == ["lstm", "gru", "irnn", "rnn", "fastrnn", "trivial predictor"], "survivors do not come first"
    assert lines["lstm"]["test"] == "0.0070 ± 0.0020"
    assert (lines["lstm"]["parameters"], lines["lstm"]["state, bytes"]) == ("3,991", "240")
    assert (lines["lstm"]["rank"], lines["lstm"]["runs"]) == ("1-2", "10 + 5 of 5 [a]")
    assert [lines[name]["solved"] for name in list(lines)[:-1]] == ["5/5", "3/3", "0/5", "3/5", ""]
    assert lines["gru"]["test"] == "0.0080 ± 0.0025 (n=3)"
    assert (lines["irnn"]["test"], lines["irnn"]["rank"]) == ("did not learn", "")
    assert [lines[name]["steps to a tenth"] for name in ("lstm", "irnn")] == ["300", "never"]
    assert lines["rnn"]["test"] == "0.0010 (n=3, 2 diverged)", "the ends of what the others scored, and no mean"
    assert lines["rnn"]["converged"] == "3/5 [0.23, 0.88]"
    assert (lines["fastrnn"]["rate"], lines["fastrnn"]["test"]) == ("not tuned yet", "")
    assert lines["trivial predictor"]["test"] == "0.1667"
    assert found.cases == ["T=50"]
    rates = fair.sensitivity(found, "T=50")
    assert rates.headers == ["model", "rate 3e-4", "rate 1e-3", "rate 3e-3", "rate 1e-2", "rate 3e-2", "chosen"]
    assert [row[0] for row in rates.rows] == list(lines)[:-1]
    assert fair_table(SHIPPED.table("fair/copying"), results).cases == [], "nothing of it is recorded"


@pytest.fixture
def curves(tmp_path: Path) -> FairTable:
    """Cued copying of one digit: the GRU holds it to 80, scoRNN by a tenth of the rate to none."""
    lines = []
    for model, rate, scores in (
        ("gru", "1e-2", {10: 1.0, 20: 1.0, 40: 0.99, 80: 0.95, 160: 0.5}),
        ("scornn", "3e-3x0.1", {10: 0.8, 20: 0.97, 40: 0.98, 80: 0.1, 160: 0.0}),
    ):
        ratios = ("", "x0.1") if model == "scornn" else ("",)
        lines += tuned(model, "_digits1", rate, ratios, "score", (1.0, 0.5))
        for seed in SEEDS:
            at = {f"length__{n}___test__score": score - seed / 1000 for n, score in scores.items()}
            at |= {f"length__{n}___test__emitted": 0.01 for n in scores}
            at |= {f"length__{n}___baseline__score": 0.0 for n in scores}
            mean = sum(scores.values()) / 5 - seed / 1000
            lines.append(
                made_up(f"{model}_digits1_lr{rate}", seed, best_val___test__score=mean, baseline__score=0.0, **at)
            )
    record(tmp_path, CUED, lines)
    return fair_table(SHIPPED.table(CUED), tmp_path)


def test_the_horizon_is_read_off_the_length_curve(curves: FairTable) -> None:
    assert (curves.lengths, curves.trained["digits=1"]) == ((10, 20, 40, 80, 160), (10, 40))
    assert curves.horizon(entry(curves, "gru", "digits=1")) == 80
    assert curves.horizon(entry(curves, "scornn", "digits=1")) is None
    grid = fair.by_length(curves, "digits=1")
    assert grid.headers == [
        "model", "10", "20", "40", "80", "160", *(f"unasked, {n}" for n in (10, 20, 40, 80, 160)), "horizon"
    ]  # fmt: skip
    assert [(row[0], str(row[4]), str(row[6]), str(row[-1])) for row in grid.rows] == [
        ("gru", "0.95 ± 0.002", "0.01 [0.01, 0.01]", "80"),
        ("scornn", "0.10 ± 0.002", "0.01 [0.01, 0.01]", "none"),
    ]
    assert entry(curves, "scornn", "digits=1").rate == "3e-3x0.1"


def test_the_horizon_of_a_loss_is_where_nine_tenths_of_the_trivial_one_are_gone(tmp_path: Path) -> None:
    lines = tuned("lstm", "_T200", "1e-2") + tuned("gru", "_T200", "1e-2")
    for model, losses in {"lstm": (0.01, 0.01, 0.015, 0.02), "gru": (0.01, 0.02, 0.01, 0.01)}.items():
        for seed in SEEDS:
            at = {f"length__{n}___baseline__loss": 1 / 6 for n in (50, 100, 200, 400, 1000)}
            at |= {f"length__{n}___test__loss": x for n, x in zip((100, 200, 400, 1000), losses, strict=True)}
            lines.append(run(model, 200, "1e-2", seed, losses[1], **at))
    record(tmp_path, NAME, lines)
    found = fair_table(SHIPPED.table(NAME), tmp_path)
    assert found.trained["T=200"] == (200, 200)
    assert found.horizon(entry(found, "lstm", "T=200")) == 400
    assert found.horizon(entry(found, "gru", "T=200")) is None, "it has not learnt the length of training"


@pytest.mark.slow
def test_its_figures(curves: FairTable) -> None:
    drawn = figures(curves)
    assert list(drawn) == [
        "Cued copying, digits=1: score against multiply-adds",
        "Cued copying, digits=1: score by length",
        "Cued copying, digits=1: validation score by rate",
    ]
    assert pictures(drawn) == pictures(figures(curves))


def test_the_trivial_predictor_is_a_line_over_the_lengths(tmp_path: Path) -> None:
    lengths = (10, 20, 40, 80, 160)
    lines = tuned("gru", "_digits1", "1e-2", metric="score", ends=(1.0, 0.5))
    at = {f"length__{n}___baseline__score": n / 1000 for n in lengths}
    at |= {f"length__{n}___test__{name}": 0.5 for n in lengths for name in ("score", "emitted")}
    at["baseline__score"] = 0.0
    lines += [made_up("gru_digits1_lr1e-2", s, best_val___test__score=0.5, **at) for s in SEEDS]
    record(tmp_path, CUED, lines)
    (axes,) = figures(fair_table(SHIPPED.table(CUED), tmp_path))["Cued copying, digits=1: score by length"].axes
    (line,) = [one for one in axes.lines if one.get_label() == drawing.TRIVIAL]
    assert [tuple(point) for point in line.get_xydata().tolist()] == [(n, n / 1000) for n in lengths]


def test_the_front_is_what_nothing_beats_in_both_and_names_are_apart() -> None:
    points = [(1.0, 0.5), (2.0, 0.6), (3.0, 0.4), (3.0, 0.3), (4.0, 0.35)]
    assert front(points, higher=False) == [0, 3]
    assert front(points, higher=True) == [0, 1]
    assert _apart((50, 51, 100, 101, 200, 201, 400)) == ["50", "", "100", "", "200", "", "400"]


def test_a_small_loss_has_its_name_beside_it(results: Path) -> None:
    (axes,) = figures(fair_table(SHIPPED.table(NAME), results))["Adding, T=50: score against multiply-adds"].axes
    named = {text.get_text(): text.xy[1] for text in axes.texts if isinstance(text, Annotation)}
    assert named["lstm"] == pytest.approx(0.007), "which rounds to 0.01"
    assert axes.get_yscale() == "log"


def test_the_overview_is_normalised(results: Path, curves: FairTable) -> None:
    grid = fair.together([fair_table(SHIPPED.table(NAME), results), curves])
    assert {row[0]: list(map(str, row[1:])) for row in grid.rows}["gru"] == ["0/1", "", "0.89"], (
        "two of its seeds are missing in one"
    )
    more = [run("gru", 50, "3e-3", s, 0.006 + s / 1000) for s in SEEDS[3:]]
    record(results, NAME, [*records.read(results, NAME), *more])
    grid = fair.together([fair_table(SHIPPED.table(NAME), results), curves])
    assert grid.headers == ["model", "above 0.9", "Adding, T=50", "Cued copying, digits=1"]
    assert {row[0]: list(map(str, row[1:])) for row in grid.rows}["gru"] == ["1/2", "0.95", "0.89"]
    rows = {row[0]: list(map(str, row[1:])) for row in grid.rows}
    assert rows["lstm"] == ["1/1", "0.96", ""]
    assert rows["irnn"] == ["0/1", "did not learn", ""]
    assert rows["rnn"] == ["0/1", "2/5 diverged", ""]
    blind = fair.together([replace(curves, order_blind={"digits=1": {None: 0.25}})]).rows[-1]
    assert list(map(str, blind)) == ["order-blind predictor", "", "0.25"]


@pytest.mark.slow
def test_a_shortened_run_is_in_no_full_table(results: Path, tmp_path: Path) -> None:
    scores = {"best_val___test__accuracy": 0.9, "best_val___val__accuracy": 0.9}
    short = [made_up("lstm_lr1e-3", seed, "short", **scores) for seed in (1, 101)]
    record(results, "fair/har2", short)
    found = {(c.table.name, c.preset): c for c in fair_tables(SHIPPED.tables(), results)}
    assert not found["fair/har2", "full"].lines
    assert fair.section(found["fair/har2", "short"]).heading.endswith("shortened to short: trainer.max_steps=1000")
    headings = [section.heading for section in fair.document_of(results).sections]
    assert [heading for heading in headings if heading.startswith("2,000")] == [fair.TITLE]
    alone = tmp_path / "alone"
    every = [name for name in SHIPPED.options("experiment") if name.startswith("fair/")]
    assert len(fair_tables(SHIPPED.tables(), alone)) == len(every)
    record(alone, "fair/har2", short)
    assert [(c.table.name, c.preset) for c in fair_tables(SHIPPED.tables(), alone)] == [("fair/har2", "short")]


@pytest.mark.slow
def test_the_same_records_give_the_same_bytes_and_tracks_are_never_mixed(results: Path) -> None:
    rendered = tables.render("fair", results)
    assert "reproduced" not in rendered["md"]
    assert all("fair/" not in tables.render(paper, results)["md"] for paper in ("sgornn", "scornn"))
    assert all(SHIPPED.table(c.table.name).track == "fair" for c in fair_tables(SHIPPED.tables(), results))
    assert tables.render("fair", results) == rendered
    found = fair_table(SHIPPED.table(NAME), results)
    assert pictures(figures(found)) == pictures(figures(found))


def test_the_figures_of_lengths_that_are_learnt(results: Path) -> None:
    assert list(figures(fair_table(SHIPPED.table(NAME), results))) == [
        "Adding, T=50: score against multiply-adds",
        "Adding, T=50: validation score by rate",
        "Adding: lengths that are learnt",
    ]
    assert figures(fair_table(SHIPPED.table("fair/har2"), results)) == {}


def test_the_verbs(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = f"results_root={results}"
    assert main(["tables", "fair", root]) == 0
    assert (results / "tables" / "fair.csv").read_text().count("\nfair/adding,full,") == 5
    assert main(["compare", NAME, root]) == 0
    assert "T=50" in capsys.readouterr().out
    assert main(["plot", NAME, root]) == 0
    assert (results / "figures" / "fair-adding-lengths-that-are-learnt.svg").is_file()


@pytest.mark.parametrize(("score", "told"), [(None, "has no value in"), (5.0, r"has the value 5, which is beyond \(")])
def test_a_score_that_cannot_be_is_damage_and_no_divergence(score: float | None, told: str, tmp_path: Path) -> None:
    given = {} if score is None else {"best_val___test__accuracy": score}
    lines = [made_up("lstm_lr1e-2", 1, best_val___val__accuracy=0.9, **given)]
    record(tmp_path, "fair/har2", lines)
    with pytest.raises(StorageError, match=rf"har2.csv: run \S+ {told}"):
        fair_table(SHIPPED.table("fair/har2"), tmp_path)


@pytest.mark.parametrize(
    ("name", "value", "wrong"),
    [
        ("length/80:test/score", None, "has no value in length/80:test/score"),
        ("length/80:test/score", 5.0, "has the value 5, which is beyond"),
        ("baseline/score", 0.5, r"trivial predictor scores 0\.5 in the records of gru and 0 in those of scornn"),
    ],
)
def test_damaged_records_are_refused(
    name: str, value: float | None, wrong: str, curves: FairTable, tmp_path: Path
) -> None:
    lines = []
    for line in curves.lines:
        hit = line.row.startswith("gru") and name in line.values and (line.seed == 1 or value == 0.5)
        kept = {key: found for key, found in line.values.items() if key != name or not hit}
        lines.append(records.Line(kept | ({name: value} if hit and value is not None else {})))
    record(tmp_path, CUED, lines)
    with pytest.raises(StorageError, match=wrong):
        fair_table(SHIPPED.table(CUED), tmp_path)
