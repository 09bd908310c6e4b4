"""The picture of a trained cell's dynamics: eigenvalues, singular values; states, gradients and gates over time."""

from itertools import cycle
from typing import TYPE_CHECKING, Any

from orthobench.report import drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def picture(found: dict[str, Any]) -> "Figure":
    """Four panels from what `orthobench.run.dynamics.dynamics` has found, and a fifth where the cell has gates."""
    gated = any(layer["gates"] for layer in found["layers"])
    figure = drawing.empty(8.4, 10.0 if gated else 7.0)
    panels = figure.subplot_mosaic(
        [["plane", "spectrum"], ["states", "gradients"], *([["gates"] * 2] if gated else [])]
    )
    plane, spectrum, states = panels["plane"], panels["spectrum"], panels["states"]
    plane.add_patch(_circle())
    styles = cycle(zip(range(len(drawing.COLOURS)), drawing.MARKERS, drawing.DASHES * 2, strict=False))
    several = len(found["layers"]) > 1
    for number, layer in enumerate(found["layers"], start=1):
        place, _, dash = next(styles)
        where = f"layer {number}" if several else "h"
        norms: dict[str, Any] = {"color": drawing.colour(place), "linestyle": dash}
        states.plot(range(1, found["T"] + 1), layer["state_norm"], **norms, label=where)
        for name, matrix in layer["matrices"].items():
            place, mark, dash = next(styles)
            colour, label = drawing.colour(place), drawing.plain(f"{where}, {name}" if several else name)
            points = [(_part(r, a, 0), _part(r, a, 1)) for r, a in zip(matrix["modulus"], matrix["phase"], strict=True)]
            plane.plot(*zip(*points, strict=True), mark, color=colour, markersize=3, linestyle="none", label=label)
            spectrum.plot(
                range(1, len(points) + 1), matrix["singular_values"], color=colour, linestyle=dash, label=label
            )
    backwards = found["hidden_gradient"][::-1]
    panels["gradients"].plot(range(len(backwards)), backwards, color=drawing.colour(0))
    if any(value > 0 for value in backwards):
        panels["gradients"].set_yscale("log")
    plane.set(aspect="equal", title="eigenvalues", xlabel="real part", ylabel="imaginary part")
    spectrum.set(title="singular values", xlabel="rank", ylabel="value")
    highest = max((m["singular_values"][0] for layer in found["layers"] for m in layer["matrices"].values()), default=1)
    spectrum.set_ylim(0, 1.1 * highest or 1)
    states.set(title="norm of the state, mean over sequences", xlabel="time step t", ylabel="||h||")
    panels["gradients"].set(title="norm of dL/dh, last layer", xlabel="steps before the end, T - t", ylabel="||dL/dh||")
    if gated:
        _gates(panels["gates"], found, several)
    for name, axes in panels.items():
        axes.grid(alpha=0.25, linewidth=0.6)
        if name != "plane":
            drawing.whole(axes)
        if axes.get_legend_handles_labels()[0]:
            beside: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1, 1)} if name == "plane" else {}
            axes.legend(fontsize=8, frameon=False, ncols=2 if name == "gates" else 1, **beside)
    return figure


def _gates(axes: "Axes", found: dict[str, Any], several: bool) -> None:
    """The median of each gate over the steps, in a band from the 10 % to the 90 % quantile."""
    number, steps = 0, range(1, found["T"] + 1)
    for place, layer in enumerate(found["layers"], start=1):
        for name, quantiles in layer["gates"].items():
            low, middle, high = zip(*quantiles, strict=True)
            label = drawing.plain(f"layer {place}, {name}" if several else name)
            ink, dash = drawing.dashed(number)
            axes.plot(steps, middle, color=ink, linestyle=dash, linewidth=1.4, label=label)
            axes.fill_between(steps, low, high, color=ink, alpha=0.12, linewidth=0)
            number += 1
    axes.set(title="gates: median over units and sequences, 10 % to 90 %", xlabel="time step t", ylabel="gate")
    axes.set_ylim(-0.03, 1.03)


def _part(modulus: float, phase: float, which: int) -> float:
    from math import cos, sin

    return modulus * (sin if which else cos)(phase)


def _circle() -> Any:
    from matplotlib.patches import Circle

    return Circle((0, 0), 1, fill=False, color="0.7", linewidth=1)
