"""Figures: words, light and dark, the picture of a tuning; and their files, formats, titles, scales and styles."""

from pathlib import Path

import pytest

from orthobench.errors import ConfigError
from orthobench.report import drawing
from orthobench.report.importance import picture
from orthobench.report.saving import FORMATS, Look

LINES = {"a": [(0.0, 1.0), (1000.0, 2.0)], "b": [(0.0, 3.0), (1000.0, 1.5)]}
HEADS = {"svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF"}


@pytest.mark.parametrize("form", FORMATS)
def test_a_format_has_its_head_and_the_same_bytes_again(form: str) -> None:
    def made() -> bytes:
        look = Look(form)
        with look.applied():
            return look.saved(drawing.lines(LINES, "training steps", "loss"), "a title")

    assert made().startswith(HEADS[form])
    assert made() == made()


def test_a_format_that_is_not_known() -> None:
    with pytest.raises(ConfigError, match=r"--format pgn is not known: did you mean 'png'\?"):
        Look("pgn")


def test_steps_are_whole_numbers_and_the_trivial_predictor_is_a_line() -> None:
    figure = drawing.lines({"a": [(float(n), 1.0) for n in range(0, 30000, 1000)]}, "training steps", "loss", level=2.0)
    (axes,) = figure.axes
    figure.draw_without_rendering()
    assert "20,000" in [tick.get_text() for tick in axes.get_xticklabels()]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a", drawing.TRIVIAL]
    assert axes.lines[1].get_ydata()[0] == 2.0
    assert axes.get_legend().get_title().get_text() == "", "one seed has no band"


def test_seeds_are_a_band_and_many_lines_have_their_legend_beside() -> None:
    points = [(0.0, 1.0), (0.0, 2.0), (1.0, 3.0)]
    figure = drawing.lines({str(n): points for n in range(9)}, "training steps", "loss")
    legend = figure.axes[0].get_legend()
    assert legend.get_title().get_text() == drawing.BAND
    figure.draw_without_rendering()
    assert legend.get_window_extent().x0 >= figure.axes[0].get_window_extent().x1


def test_logy_is_for_values_above_zero() -> None:
    scales = []
    for low in (0.5, -0.5):
        figure = drawing.lines({"a": [(0.0, low), (10.0, 1.0)]}, "training steps", "loss")
        look = Look(logy=True)
        look.saved(figure)
        scales.append(figure.axes[0].get_yscale())
    figure, axes = drawing.subplot(3, 2)
    axes.barh([0, 1], [1, 2])
    axes.set_yticks([0, 1], ["lstm", "gru"])
    Look(logy=True).saved(figure)
    assert [*scales, axes.get_yscale()] == ["log", "linear", "linear"]


def test_a_style_of_ones_own_and_only_while_it_is_worn(tmp_path: Path) -> None:
    import matplotlib

    style = tmp_path / "mine.mplstyle"
    style.write_text("axes.prop_cycle: cycler(color=['ff0000', '00ff00'])\nfont.size: 20\naxes.facecolor: eeeeee\n")
    with Look(style=str(style)).applied():
        assert matplotlib.rcParams["font.size"] == 20
        assert [drawing.colour(number) for number in range(3)] == ["#ff0000", "#00ff00", "#ff0000"]
        assert drawing.lines(LINES, "step", "loss").axes[0].lines[1].get_color() == "#00ff00"
    assert matplotlib.rcParams["font.size"] == 10
    assert drawing.colour(0) == drawing.COLOURS[0]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("lines.linewdth: 2\n", "linewdth"),
        ("font.size: large enough\n", "font.size"),
        ("\udcff".encode("utf-8", "surrogateescape") + b"\n", "style"),
        (None, "is neither a style file nor a style of matplotlib"),
    ],
    ids=["key", "value", "bytes", "missing"],
)
def test_a_wrong_style_is_refused(content: str | bytes | None, sentence: str, tmp_path: Path) -> None:
    style = tmp_path / "mine.mplstyle"
    if content is not None:
        style.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ConfigError, match=sentence), Look(style=str(style)).applied():
        pass


def test_a_misspelt_style_of_matplotlib() -> None:
    with pytest.raises(ConfigError, match=r"did you mean 'ggplot'\?"), Look(style="ggplt").applied():
        pass


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ("val/loss", "validation loss"),
        ("test/accuracy", "test accuracy"),
        ("orthogonality", "orthogonality"),
        ("hidden_gradient/3", "hidden gradient/3"),
    ],
)
def test_metrics_in_words(metric: str, words: str) -> None:
    assert drawing.words(metric) == words


def test_black_and_white_follow_the_reader_and_colours_stay() -> None:
    figure, axes = drawing.subplot(3, 2)
    axes.plot([0, 1], [0, 1], color=drawing.COLOURS[0])
    axes.plot([0, 1], [1, 0], "o", color="black", markerfacecolor="white")
    axes.set_xlabel("time")
    text = drawing.svg(figure)
    assert "#000000" not in text
    assert "#ffffff" not in text
    assert {"stroke: currentColor", "fill: var(--paper)", "stroke: #0072b2"} <= set(
        part.strip() for style in text.split('style="')[1:] for part in style.split('"')[0].split(";")
    )
    assert text.split(">")[0].endswith('fill="currentColor"'), "letters are paths without a colour of their own"
    assert "prefers-color-scheme:dark" in text


def test_importances_and_scores_are_drawn() -> None:
    shares, scores = {"optimizer.lr": 0.75, "model.rho": 0.25}, [(1, 0.5), (2, 0.001), (4, 0.3)]
    text = picture(shares, scores, "val/loss", higher=False)
    assert text.startswith("<svg")
    assert text == picture(shares, scores, "val/loss", higher=False)
    assert text != picture(shares, scores, "val/loss", higher=True), "the best so far is another"
    assert picture({}, [(1, 0.5)], "val/accuracy", higher=True).startswith("<svg"), "of one trial, no shares"
