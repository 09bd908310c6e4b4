"""What figures share: words, and SVG in the reader's light or dark mode."""

import pytest

from orthobench.report import drawing


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
