"""Figures from records, as SVG: validation curves of a figure's cells, scores beside published ones, mean ranks.

The same records give the same bytes. Cells differ in dash or marker too, so that a figure reads without colour.
"""

from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

from orthobench.report import curves, drawing, wording
from orthobench.report.comparison import Compared, Comparison
from orthobench.report.ranks import Ranking
from orthobench.report.ucr import rankings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOG_RATIO = 30.0


def figures(comparison: Comparison, results: Path) -> dict[str, str]:
    """SVG text by title, of every figure that the records of a table allow."""
    found: dict[str, str] = {}
    points = [p for p in curves.read(results, comparison.table.name) if p.preset == comparison.preset]
    name = wording.title(comparison)
    if points:
        found[f"{name}: validation during training"] = drawing.svg(_curves(points, comparison))
    shown = [c for c in comparison.numbers if c.row.kind == "result" and c.ours is not None and c.row.value is not None]
    for column in dict.fromkeys(c.row.column for c in shown):
        same = [c for c in shown if c.row.column == column]
        if len(same) > 1:
            found[f"{name}: {column}, published and ours"] = drawing.svg(_dots(same))
    for whose, ranking in rankings(comparison).items():
        found[f"{name}: mean ranks over the data sets, {whose}"] = drawing.svg(_ranks(ranking))
    return found


def _curves(points: list[curves.Point], comparison: Comparison) -> "Figure":
    """A line per cell, the mean over its seeds, in a band from the least to the greatest."""
    figure, axes = drawing.subplot(7.2, 3.8)
    styles = cycle([(colour, dash) for dash in drawing.DASHES for colour in drawing.COLOURS])
    values: list[float] = []
    for cell in (cell for cell in comparison.table.cells if any(p.cell == cell for p in points)):
        by_step: dict[int, list[float]] = {}
        for point in points:
            if point.cell == cell:
                by_step.setdefault(point.step, []).append(point.value)
        steps = sorted(by_step)
        middle = [sum(by_step[step]) / len(by_step[step]) for step in steps]
        colour, dash = next(styles)
        axes.plot(steps, middle, color=colour, linestyle=dash, linewidth=1.4, label=drawing.plain(cell))
        low, high = ([f(by_step[step]) for step in steps] for f in (min, max))
        axes.fill_between(steps, low, high, color=colour, alpha=0.15, linewidth=0)
        values += middle
    if min(values) > 0 and max(values) / min(values) > LOG_RATIO:
        axes.set_yscale("log")
    axes.set_xlabel("training steps")
    axes.set_ylabel(" or ".join(sorted({point.name for point in points})))
    axes.legend(fontsize=7, ncols=2, frameon=False)
    return figure


def _dots(shown: list[Compared]) -> "Figure":
    """Published and ours per row, ours with the prediction interval."""
    figure, axes = drawing.subplot(7.2, 0.8 + 0.26 * len(shown))
    for place, compared in enumerate(shown):
        published, ours = compared.row.value or 0.0, compared.ours or 0.0
        axes.plot([published], [place], "k|", markersize=11, label="published" if place == 0 else None)
        axes.plot([ours], [place], "o", color=drawing.COLOURS[0], markersize=5, label="ours" if place == 0 else None)
        if compared.interval is not None:
            axes.hlines(place, *compared.interval, color=drawing.COLOURS[0], linewidth=1)
    axes.set_yticks(range(len(shown)), [drawing.plain(c.row.row) for c in shown])
    axes.invert_yaxis()
    axes.margins(y=0.08)
    axes.legend(fontsize=7, frameon=False)
    return figure


def _ranks(ranking: Ranking) -> "Figure":
    """A critical-difference diagram: bars join models that do not differ significantly."""
    height = 1.0 + 0.3 * (len(ranking.ranks) + len(ranking.groups))
    figure, axes = drawing.subplot(7.2, height)
    for place, (model, value) in enumerate(ranking.ranks.items()):
        axes.plot(
            [value],
            [place],
            drawing.MARKERS[place % len(drawing.MARKERS)],
            color=drawing.COLOURS[place % len(drawing.COLOURS)],
        )
        axes.annotate(f"{drawing.plain(model)}  {value:.2f}", (value, place), (8, -3), textcoords="offset points")
    for place, group in enumerate(ranking.groups, start=len(ranking.ranks)):
        ends = [ranking.ranks[model] for model in group]
        axes.hlines(place, min(ends), max(ends), color="black", linewidth=3)
    axes.set_xlim(0.8, len(ranking.ranks) + 0.8)
    axes.set_yticks([])
    axes.invert_yaxis()
    axes.margins(y=0.1)
    axes.set_xlabel("mean rank, 1 is best; bars join models that do not differ (Wilcoxon, Holm)")
    return figure
