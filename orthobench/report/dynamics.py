"""The picture of a trained cell's dynamics, as SVG: eigenvalues, singular values, states and gradients over time."""

from itertools import cycle
from typing import Any

from orthobench.report import drawing


def picture(found: dict[str, Any]) -> str:
    """Four panels from what `orthobench.run.dynamics.dynamics` has found."""
    figure = drawing.empty(8.4, 7.0)
    (plane, spectrum), (states, gradients) = figure.subplots(2, 2)
    plane.add_patch(_circle())
    styles = cycle(zip(drawing.COLOURS, drawing.MARKERS, drawing.DASHES * 2, strict=False))
    several = len(found["layers"]) > 1
    for number, layer in enumerate(found["layers"], start=1):
        colour, _, dash = next(styles)
        where = f"layer {number}" if several else "h"
        states.plot(range(1, found["T"] + 1), layer["state_norm"], color=colour, linestyle=dash, label=where)
        for name, matrix in layer["matrices"].items():
            colour, mark, dash = next(styles)
            label = drawing.plain(f"{where}, {name}" if several else name)
            points = [(_part(r, a, 0), _part(r, a, 1)) for r, a in zip(matrix["modulus"], matrix["phase"], strict=True)]
            plane.plot(*zip(*points, strict=True), mark, color=colour, markersize=3, linestyle="none", label=label)
            spectrum.plot(matrix["singular_values"], color=colour, linestyle=dash, label=label)
    backwards = found["hidden_gradient"][::-1]
    gradients.plot(range(len(backwards)), backwards, color=drawing.COLOURS[0])
    if any(value > 0 for value in backwards):
        gradients.set_yscale("log")
    plane.set(aspect="equal", title="eigenvalues", xlabel="real part", ylabel="imaginary part")
    spectrum.set(title="singular values", xlabel="rank", ylabel="value")
    highest = max((m["singular_values"][0] for layer in found["layers"] for m in layer["matrices"].values()), default=1)
    spectrum.set_ylim(0, 1.1 * highest or 1)
    states.set(title="norm of the state, mean over sequences", xlabel="t", ylabel="||h||")
    gradients.set(title="norm of dL/dh, last layer", xlabel="T - t", ylabel="||dL/dh||")
    for axes in (plane, spectrum, states):
        if axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize=7, frameon=False)
    return drawing.svg(figure)


def _part(modulus: float, phase: float, which: int) -> float:
    from math import cos, sin

    return modulus * (sin if which else cos)(phase)


def _circle() -> Any:
    from matplotlib.patches import Circle

    return Circle((0, 0), 1, fill=False, color="0.7", linewidth=1)
