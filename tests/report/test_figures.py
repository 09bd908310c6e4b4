"""Figures that tables declare: one for every figure of the papers, drawn from curves and records."""

import re
from itertools import combinations
from pathlib import Path

import pytest
from matplotlib.text import Text

from orthobench.recording.curve import Curve
from orthobench.report import drawing
from orthobench.report.figures import _sweep, _through, _trivial, figures
from orthobench.report.named_points import name_points
from orthobench.study.catalogue import SHIPPED
from orthobench.study.records import curves, records
from orthobench.study.records.curves import CurvePoint
from orthobench.study.records.records import Line
from orthobench.study.reproduce import record_line
from orthobench.study.reproduce.record_line import thinned_curves
from orthobench.study.tables.figure import Figure
from orthobench.study.verdicts.comparison import compare
from tests.report.made_up import made_up, record

DRAWN = {
    "scornn": range(1, 6),
    "ncgru": range(1, 9),
    "sgornn": range(1, 5),
    "spectral_rnn": range(1, 7),
    "urnn_ugru": range(1, 13),
    "pdssm": (),
    "mamba3": (),
    "deltanet": (),
    "m2rnn": (),
}


@pytest.mark.parametrize("paper", SHIPPED.papers())
def test_every_figure_of_a_paper_is_drawn(paper: str) -> None:
    found: set[int] = set()
    for name in (name for name in SHIPPED.options("experiment") if name.startswith(f"{paper}/")):
        for figure in SHIPPED.table(name).figures:
            numbers = [int(number) for number in re.findall(r"\d+", figure.title.partition(":")[0])]
            found |= set(range(numbers[0], numbers[-1] + 1))
    assert found == set(DRAWN[paper])


@pytest.mark.parametrize("name", [name for name in SHIPPED.options("experiment") if SHIPPED.table(name).figures])
def test_a_figure_has_cells_and_a_title_of_its_own(name: str) -> None:
    table = SHIPPED.table(name)
    assert len({figure.title for figure in table.figures}) == len(table.figures)
    for figure in table.figures:
        shown = [cell for cell in table.rows if figure.shows(cell)]
        assert shown, figure.title
        assert len(shown) <= 28 or figure.kind == "sweep", "there are 28 styles"


def test_which_cells_and_curves_a_figure_needs() -> None:
    ending = Figure("a", "curve", ("val/loss",), ("_mnist", "lstm"))
    assert [ending.shows(cell) for cell in ("rnn_mnist", "rnn_pmnist", "lstm", "my_lstm")] == [True, False, True, False]
    assert ending.reads("val/loss")
    assert not ending.reads("train/loss")
    through = Figure("a", "through", ("hidden_gradient",), ())
    assert through.reads("hidden_gradient/50")
    assert not through.reads("hidden_gradient_other/50")
    assert not Figure("a", "sweep", ("test/loss",), ()).reads("test/loss")


def test_a_run_leaves_the_curves_that_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_line, "_own", lambda settings: {})  # a record from before curves had a digest
    run = SHIPPED.settings(["experiment=sgornn/figure4", "cell=lstm", f"runs_root={tmp_path}"])
    run.folder.mkdir(parents=True)
    curve = Curve(run.folder / "metrics.csv")
    for step in range(0, 1000, 10):
        curve.append(step, 0, {"gap/accuracy": step / 1000, "gap/loss": 0.0, "train/loss": 1.0})
    points = thinned_curves(run, SHIPPED.table("sgornn/figure4"), "full", "lstm")
    assert {point.name for point in points} == {"gap/accuracy", "gap/loss", "train/loss"}
    assert len(points) <= 2 * (curves.POINTS + 1) + record_line.LEARNING + 1
    assert {point.name for point in thinned_curves(run, SHIPPED.table("sgornn/table2"), "full", "lstm")} == {
        "train/loss"
    }


def test_gradients_are_drawn_over_time_at_the_first_and_last_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, list[tuple[float, float]]] = {}
    monkeypatch.setattr("orthobench.report.drawing.lines", lambda lines, *_, **__: seen.update(lines))
    points = [
        CurvePoint("id", "full", "lstm", 1, f"hidden_gradient/{t}", step, float(t + step))
        for step in (0, 100, 300)
        for t in (1, 500)
    ]
    _through(SHIPPED.table("scornn/figure5").figures[0], points, compare(SHIPPED.table("scornn/figure5"), tmp_path))
    assert seen == {
        "lstm, after 0 steps": [(1.0, 1.0), (500.0, 500.0)],
        "lstm, after 300 steps": [(1.0, 301.0), (500.0, 800.0)],
    }


def test_a_sweep_is_over_the_number_in_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, list[tuple[float, float]]] = {}
    monkeypatch.setattr("orthobench.report.drawing.lines", lambda lines, *_, **__: seen.update(lines))
    depths = {f"{model}_{depth}": 1 / depth for model in ("mlp", "spectral_mlp") for depth in (30, 100)}
    lines = [made_up(cell, 1, best_val___test__accuracy=value) for cell, value in depths.items()]
    lines.append(made_up("mlp_50", 1, diverged=True))
    record(tmp_path, "spectral_rnn/figure5", lines)
    _sweep(
        SHIPPED.table("spectral_rnn/figure5").figures[0], [], compare(SHIPPED.table("spectral_rnn/figure5"), tmp_path)
    )
    assert {kind: sorted(points) for kind, points in seen.items()} == {
        "mlp": [(30.0, 1 / 30), (100.0, 0.01)],
        "spectral_mlp": [(30.0, 1 / 30), (100.0, 0.01)],
    }


def test_a_line_is_the_mean_in_a_band() -> None:
    figure = drawing.lines({"a": [(0.0, 1.0), (0.0, 3.0), (10.0, 5.0)], "b": [(0.0, 0.1)]}, "step", "loss")
    line, band = figure.axes[0].lines[0], figure.axes[0].collections[0].get_paths()[0]
    assert line.get_path().vertices.tolist() == [[0.0, 2.0], [10.0, 5.0]]  # type: ignore[union-attr]
    assert (band.get_extents().y0, band.get_extents().y1) == (1.0, 5.0)
    assert figure.axes[0].get_yscale() == "log", "0.1 to 5 is more than a factor of 30"


@pytest.mark.slow
def test_bars_and_curves_together(tmp_path: Path) -> None:
    record(tmp_path, "ncgru/figure6", [made_up("order_1", s, time__minutes_per_epoch=s) for s in (1, 2)])
    assert list(figures(compare(SHIPPED.table("ncgru/figure6"), tmp_path), tmp_path)) == [
        "Figure 6: minutes of an epoch"
    ]
    assert figures(compare(SHIPPED.table("ncgru/table1"), tmp_path), tmp_path) == {}
    record(tmp_path, "ncgru/table1", [made_up("lstm_100", 1)])
    (line,) = records.read(tmp_path, "ncgru/table1")
    curve = [CurvePoint(line.run_id, "full", "lstm_100", 1, "train/loss", t, 1.0) for t in (0, 1)]
    curves.add(tmp_path, "ncgru/table1", [*curve, curve[0]._replace(run_id="another", seed=2)])
    assert list(figures(compare(SHIPPED.table("ncgru/table1"), tmp_path), tmp_path)) == ["Figure 1: parenthesis, T=100"]


@pytest.fixture
def losses(tmp_path: Path) -> Path:
    """Records of two seeds of a row, each with a curve of three points."""
    lines = [made_up("vprnn_0.01", s, last___val__loss=0.01, baseline__loss=1 / 6) for s in (1, 2)]
    record(tmp_path, "sgornn/figure1", lines)
    curve = [
        CurvePoint(line.run_id, "full", line.row, line.seed, "val/loss", t, 0.2 / (1 + t * line.seed))
        for line in records.read(tmp_path, "sgornn/figure1")
        for t in (0, 100, 200)
    ]
    curves.add(tmp_path, "sgornn/figure1", curve)
    return tmp_path


@pytest.mark.parametrize(("other", "level"), [(1 / 6, 1 / 6), (0.1, None)])
def test_the_trivial_predictor_is_a_line_where_all_runs_have_the_same_one(
    losses: Path, other: float, level: float | None
) -> None:
    lines = [*records.read(losses, "sgornn/figure1")]
    record(losses, "sgornn/figure1", [lines[0], Line(lines[1].values | {"baseline/loss": other})])
    (figure,) = figures(compare(SHIPPED.table("sgornn/figure1"), losses), losses).values()
    found = [line.get_ydata()[0] for line in figure.axes[0].lines if line.get_label() == drawing.TRIVIAL]
    assert found == ([] if level is None else [pytest.approx(level)])


@pytest.mark.parametrize(
    ("metrics", "level"),
    [
        (("val/loss",), 1 / 6),
        (("train/loss", "val/loss"), 1 / 6),
        (("test/loss",), 1 / 6),
        (("val/loss", "val/accuracy"), None),
        (("gap/loss",), None),
        (("hidden_gradient",), None),
    ],
)
def test_a_gap_or_a_gradient_has_no_trivial_predictor(
    losses: Path, metrics: tuple[str, ...], level: float | None
) -> None:
    comparison = compare(SHIPPED.table("sgornn/figure1"), losses)
    assert _trivial(comparison, ["vprnn_0.01"], metrics) == (None if level is None else pytest.approx(level))


def test_ours_beside_the_published_numbers_have_the_trivial_predictor(tmp_path: Path) -> None:
    rows = {"lstm": 0.9, "vprnn": 0.8}
    lines = [made_up(row, 1, last___test__accuracy=score, baseline__accuracy=0.1135) for row, score in rows.items()]
    record(tmp_path, "sgornn/table2", lines)
    drawn = figures(compare(SHIPPED.table("sgornn/table2"), tmp_path), tmp_path)
    (axes,) = drawn["Table 2: Test Accuracy, published and ours"].axes
    found = [line.get_xdata()[0] for line in axes.lines if line.get_label() == drawing.TRIVIAL]
    assert found == [pytest.approx(11.35)], "in the percent of the paper"


def test_curves_are_drawn_the_same_each_time(losses: Path) -> None:
    comparison = compare(SHIPPED.table("sgornn/figure1"), losses)
    drawn, again = ([drawing.svg(one) for one in figures(comparison, losses).values()] for _ in range(2))
    assert list(figures(comparison, losses)) == ["Figure 1: T=500"]
    assert drawn == again
    assert drawn[0].startswith("<svg")


def test_curves_are_read_back(losses: Path) -> None:
    points = curves.read(losses, "sgornn/figure1")
    assert len(points) == 6
    curves.add(losses, "sgornn/figure1", points)
    assert curves.read(losses, "sgornn/figure1") == points
    long = curves.thinned([[float(i), 0.0] for i in range(1001)])
    assert len(long) <= curves.POINTS + 1
    assert (long[0][0], long[-1][0]) == (0.0, 1000.0)


@pytest.mark.parametrize("end", [(1.0, 0.5), (1.0, 0.001)])
def test_no_name_of_a_point_lies_on_another_or_on_a_mark(end: tuple[float, float]) -> None:
    figure, axes = drawing.subplot(7.2, 4.6)
    points = [(1.0, 0.09 + number / 400) for number in range(6)] + [(1.02, 0.1), end]
    axes.plot(*zip(*points, strict=True), "o", label="points")
    axes.set_yscale("log")
    axes.legend()
    name_points(axes, [(point, f"a model of number {number}") for number, point in enumerate(points)], points)
    figure.draw_without_rendering()
    boxes = [Text.get_window_extent(text) for text in axes.texts]  # without the lines to their points
    assert len(boxes) == len(points)
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    marks = axes.transData.transform(points)
    assert not any(box.contains(*mark) for box in boxes for mark in marks)


def test_the_key_of_a_figure_is_no_part_of_its_title() -> None:
    title = drawing.Title("HAR-2: two activities", "score by length")
    assert (title, title.key) == ("HAR-2: two activities: score by length", "score by length")
    assert [figure("T=50: all cells").of_and_key, figure("Figure 1: T=50").of_and_key] == [
        ("T=50", "all cells"),
        ("Figure 1", "T=50"),
    ]
    assert figure("All cells").of_and_key == ("", "All cells")


def figure(title: str) -> Figure:
    return Figure(title, "curve", ("val/loss",), ())
