"""What every figure shares: colours and marks that can be told apart without colour, and SVG that never changes.

The same figure gives the same bytes.
"""

import io
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
DASHES = ("solid", "dashed", "dashdot", "dotted")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def subplot(width: float, height: float) -> tuple["Figure", "Axes"]:
    """An empty figure of so many inches."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()


def svg(figure: "Figure") -> str:
    """A figure as SVG, its text as paths."""
    import matplotlib

    os.environ.setdefault("SOURCE_DATE_EPOCH", "0")
    text = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "orthobench", "svg.fonttype": "path", "font.size": 9}):
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    found = text.getvalue()
    return found[found.index("<svg") :]


def plain(text: Any) -> str:
    """Text that matplotlib does not take for mathematics, and a legend does not leave out."""
    return str(text).replace("$", r"\$").lstrip("_")
