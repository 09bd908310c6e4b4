"""Shared parts of every figure: colours and marks that can be told apart without colour, and SVG that never
changes.

The same figure gives the same bytes. What is black or white in it follows the reader's light or dark mode. A style of
the user's own changes colours, fonts and sizes, see `saving`.
"""

import contextlib
import io
import os
import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orthobench.common.terminal import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
DASHES = ("solid", "dashed", "dashdot", "dotted")
LOG_RATIO = 30.0
FEW = 6  # lines that have a legend inside
WIDTH = 7.2  # inches
TRIVIAL = "trivial predictor"
TRIVIAL_LINE: dict[str, Any] = {
    "color": "0.4",
    "linestyle": "dotted",
    "linewidth": 1.2,
    "zorder": 4,
    "label": TRIVIAL,
}
BAND = "mean of seeds, lowest to highest"
SPLITS = {"train": "training", "val": "validation", "test": "test", "train_eval": "training, evaluated"}
LIGHT, DARK = ("#000", "#fff"), ("#e6e6e6", "#121212")  # ink and paper
MODES = (
    "svg{{color:{0[0]};background:{0[1]};--paper:{0[1]}}}"
    "@media(prefers-color-scheme:dark){{svg{{color:{1[0]};background:{1[1]};--paper:{1[1]}}}}}"
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


class Title(str):
    """Title of a figure: what it is of, and its key among the figures of that, by which its file is named.

    Args:
        of: such as `Table 1`; empty where the key is the whole title.
        key: such as `score by length`.
    """

    key: str
    __slots__ = ("key",)

    def __new__(cls, of: str, key: str) -> "Title":
        """A text with a key."""
        made = super().__new__(cls, f"{of}: {key}" if of else key)
        made.key = key
        return made


def empty(width: float, height: float) -> "Figure":
    """An empty figure of so many inches."""
    import_with_defaults()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def subplot(width: float, height: float) -> tuple["Figure", "Axes"]:
    """An empty figure of so many inches, and its only axes."""
    figure = empty(width, height)
    return figure, figure.add_subplot()


def style(place: int) -> tuple[str, str]:
    """The colour and the mark of the model, cell or choice with that number."""
    return colour(place), MARKERS[place // len(COLOURS) % len(MARKERS)]


def dashed(place: int) -> tuple[str, str]:
    """The colour and the dash of the line with that number."""
    return colour(place), DASHES[place // len(COLOURS) % len(DASHES)]


def name_lines(axes: "Axes", names: Iterable[Any]) -> None:
    """Name the lines of a figure, the first one at its top."""
    shown = [plain(name) for name in names]
    axes.set_yticks(range(len(shown)), shown)
    axes.invert_yaxis()


@cache
def import_with_defaults() -> None:
    """Import matplotlib with its own defaults, so that a figure has the same bytes for everybody.

    It would read a `matplotlibrc` in the working folder, in its user's settings or of $MATPLOTLIBRC, and a backend of
    $MPLBACKEND; odd ones end in a traceback, as `text.usetex` does without LaTeX. The first place in which it looks is
    the working folder, which is the one of its own file while it is imported.
    """
    package = find_spec("matplotlib")
    home = Path(package.origin).parent / "mpl-data" if package is not None and package.origin else Path()
    with _working_in(home), _environment("MPLBACKEND", None):
        import matplotlib
        from cycler import cycler
    matplotlib.rcdefaults()  # a plug-in may have imported it before
    matplotlib.rcParams["axes.prop_cycle"] = cycler(color=COLOURS)


def colour(number: int) -> str:
    """Colour of a line, counted from 0; they begin again after the last one."""
    import matplotlib

    known = matplotlib.rcParams["axes.prop_cycle"].by_key().get("color", COLOURS)
    return known[number % len(known)]


@contextlib.contextmanager
def _working_in(folder: Path) -> Iterator[None]:
    """Change the working folder for a while; the one before is kept open, since it may have been removed."""
    if not hasattr(os, "fchdir"):  # Windows, where a folder that a program works in is not removed
        with contextlib.chdir(folder):
            yield
        return
    before = os.open(".", getattr(os, "O_PATH", os.O_RDONLY))
    try:
        os.chdir(folder)
        yield
    finally:
        os.fchdir(before)
        os.close(before)


@contextlib.contextmanager
def _environment(name: str, value: str | None) -> Iterator[None]:
    """Set a variable of the environment for a while, or remove it."""
    before = os.environ.pop(name, None)
    if value is not None:
        os.environ[name] = value
    try:
        yield
    finally:
        os.environ.pop(name, None)
        if before is not None:
            os.environ[name] = before


def lines(
    labelled: dict[str, list[tuple[float, float]]],
    along: str,
    what: str,
    rates: bool = False,
    level: float | None = None,
) -> "Figure":
    """Lines by label, each the mean where it has several values, in a band from the least to the greatest.

    Args:
        labelled: the points of each line.
        along: what the places are.
        what: what the values are.
        rates: whether the places are numbers that are tried by their ratios, so that their axis is logarithmic too.
        level: the value of the trivial predictor, a line across; None where it has none.
    """
    beside = len(labelled) > FEW
    figure, axes = subplot(WIDTH + (2.4 if beside else 0.0), 3.8)
    every = sorted({place for points in labelled.values() for place, _ in points})
    for number, (label, points) in enumerate(labelled.items()):
        line(axes, points, number, label, marked=rates or len(every) <= FEW)
    several = any(len(points) > len({place for place, _ in points}) for points in labelled.values())
    finish(axes, what, level, beside, BAND if several else "")
    if rates:
        axes.set_xscale("log")
    if len(every) <= FEW and (rates or not along.endswith("steps")):
        axes.set_xticks(every, [f"{place:g}" for place in every])
        axes.minorticks_off()
    elif all(place == int(place) for place in every) and not rates:
        whole(axes)
    axes.set_xlabel(plain(along))
    return figure


def finish(axes: "Axes", what: str, level: float | None = None, beside: bool = False, note: str = "") -> None:
    """Complete axes with lines: the trivial predictor's, the scale, a grid, and the legend, perhaps `beside` them."""
    values = heights(axes)
    trivial(axes, level)
    if values and min(values) > 0 and max(values) / min(values) > LOG_RATIO:
        axes.set_yscale("log")
    axes.set_ylabel(plain(what))
    axes.grid(alpha=0.25, linewidth=0.6)
    place: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)} if beside else {}
    axes.legend(title=note, title_fontsize=7, fontsize=8, framealpha=0.8, edgecolor="none", **place)


def trivial(axes: "Axes", level: float | None, upright: bool = False) -> None:
    """A labelled line at what the trivial predictor scores, across the values; nothing where the task has none."""
    if level is not None:
        (axes.axvline if upright else axes.axhline)(level, **TRIVIAL_LINE)


def heights(axes: "Axes") -> list[float]:
    """Values of all lines of some axes."""
    import numpy as np

    return [value for drawn in axes.lines for value in np.asarray(drawn.get_ydata(), dtype=float).tolist()]


def line(
    axes: "Axes", points: list[tuple[float, float]], number: int, label: str, marked: bool = False
) -> tuple[list[float], list[float]]:
    """Draw the line of this number: the mean at each place, in a band over the values; returns places and means."""
    at: dict[float, list[float]] = {}
    for place, value in points:
        at.setdefault(place, []).append(value)
    places = sorted(at)
    middle = [sum(at[place]) / len(at[place]) for place in places]
    mark = "o" if len(places) == 1 or marked else None
    width = 1.6 if number < len(COLOURS) else 1.3
    (ink, dash), name = dashed(number), plain(label)
    axes.plot(places, middle, color=ink, linestyle=dash, linewidth=width, marker=mark, markersize=4, label=name)
    low, high = ([f(at[place]) for place in places] for f in (min, max))
    axes.fill_between(places, low, high, color=ink, alpha=0.15, linewidth=0)
    return places, middle


def whole(axes: "Axes") -> None:
    """Whole numbers on the horizontal axis, their thousands apart."""
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def svg(figure: "Figure") -> str:
    """A figure as SVG, its text as paths."""
    import matplotlib

    text = io.StringIO()
    style: Any = {"svg.hashsalt": "orthobench", "svg.fonttype": "path", "font.size": 9}
    with matplotlib.rc_context(style), _environment("SOURCE_DATE_EPOCH", "0"):
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    found = text.getvalue()
    found = re.sub(r"(fill|stroke): #000000", r"\1: currentColor", found[found.index("<svg") :])
    found = found.replace("fill: #ffffff", "fill: var(--paper)")
    return found.replace(">", f' fill="currentColor"><style>{MODES.format(LIGHT, DARK)}</style>', 1)


def words(metric: str, unit: str = "") -> str:
    """`validation loss` for `val/loss`, with its unit in brackets where that is given."""
    split, slash, name = metric.partition("/")
    text = f"{SPLITS[split]} {name}" if slash and split in SPLITS else metric.replace("_", " ")
    return plain(f"{text} ({unit})" if unit else text)


def plain(text: Any) -> str:
    """Text that matplotlib does not take for mathematics, and a legend does not leave out."""
    return " ".join(visible(str(text)).split()).replace("$", r"\$").lstrip("_")
