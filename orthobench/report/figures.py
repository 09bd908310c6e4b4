"""Figures from records: those that a table declares, scores beside published ones, mean ranks.

The same records give the same bytes. Cells differ in dash or marker too, so that a figure reads without colour.
"""

from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from orthobench.report import drawing
from orthobench.study.records import curves
from orthobench.study.statistics.ranks import Ranking
from orthobench.study.tables.figure import Figure as Wanted
from orthobench.study.verdicts.comparison import Compared, Comparison
from orthobench.study.verdicts.ucr import rankings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Curves = list[curves.CurvePoint]


def figures(comparison: Comparison, results: Path) -> "dict[drawing.Title, Figure]":
    """By title, every figure that the records of a table allow."""
    return alone(comparison, results) | _beside(comparison)


def alone(comparison: Comparison, results: Path) -> "dict[drawing.Title, Figure]":
    """Those that show more than published numbers and ours: what the table declares, and mean ranks."""
    read = curves.read(results, comparison.table.name)
    kept = {line.run_id for line in comparison.lines}  # curves of runs that fill nothing may lie beside them
    points = [p for p in read if p.preset == comparison.preset and p.run_id in kept]
    points = [p._replace(row=comparison.table.base(p.row)) for p in points]
    found: dict[drawing.Title, Figure] = {}
    for wanted in comparison.table.figures:
        made = DRAWN[wanted.kind](wanted, points, comparison)
        if made is not None:
            found[drawing.Title(*wanted.of_and_key)] = made
    for whose, ranking in rankings(comparison).items():
        found[drawing.Title(comparison.table.title, f"mean ranks over the data sets, {whose}")] = _ranks(ranking)
    return found


def _beside(comparison: Comparison) -> "dict[drawing.Title, Figure]":
    """A figure for each column of numbers: the published ones and ours."""
    shown = [
        c
        for c in comparison.numbers
        if c.printed.kind == "result" and c.ours is not None and c.printed.value is not None
    ]
    columns = {column: [c for c in shown if c.printed.column == column] for column in (c.printed.column for c in shown)}
    return {
        drawing.Title(comparison.table.title, f"{column}, published and ours"): _dots(same)
        for column, same in columns.items()
        if len(same) > 1
    }


def _curves(wanted: Wanted, points: Curves, comparison: Comparison) -> "Figure | None":
    """A line per row and metric over the training steps."""
    lines = {
        (row, metric): [(float(p.step), p.value) for p in points if p.row == row and p.name == metric]
        for row in comparison.table.rows
        for metric in wanted.metrics
        if wanted.shows(row)
    }
    several = len(wanted.metrics) > 1
    names = _names(comparison, [row for (row, _), found in lines.items() if found])
    labelled = {
        names[row] + (f", {drawing.words(metric)}" if several else ""): found
        for (row, metric), found in lines.items()
        if found
    }
    what, shown = " or ".join(map(drawing.words, wanted.metrics)), {row for (row, _), found in lines.items() if found}
    level = _trivial(comparison, shown, wanted.metrics)
    return drawing.lines(labelled, "training steps", what, level=level) if labelled else None


def _trivial(comparison: Comparison, rows: Collection[str], metrics: Iterable[str]) -> float | None:
    """The trivial predictor's score in rows of our table; None where they have several, or the metrics are no score."""
    parts = [metric.partition("/") for metric in metrics]
    if len({name for _, _, name in parts}) > 1 or any(split not in drawing.SPLITS for split, _, _ in parts):
        return None
    mine = [line for line in comparison.lines if comparison.table.base(line.row) in rows]
    return _one(line.metric(f"baseline/{parts[0][2]}") for line in mine)


def _one(levels: Iterable[float | None]) -> float | None:
    """The number that all of some numbers are, to six digits; None where they differ, or one of them is None."""
    found = list(levels)
    same = {None if level is None else f"{level:.6g}" for level in found}
    return found[0] if len(same) == 1 else None


def _through(wanted: Wanted, points: Curves, comparison: Comparison) -> "Figure | None":
    """A line per row over the time steps of a sequence, before training and after it."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for row in comparison.table.rows:
        mine = [p for p in points if p.row == row and wanted.shows(row) and wanted.reads(p.name)]
        for step in dict.fromkeys((min(p.step for p in mine), max(p.step for p in mine)) if mine else ()):
            name = _names(comparison, [row])[row]
            lines[f"{name}, after {step:,} steps"] = [
                (float(p.name.rpartition("/")[2]), p.value) for p in mine if p.step == step
            ]
    return drawing.lines(lines, "time step", drawing.words(wanted.metrics[0])) if lines else None


def _sweep(wanted: Wanted, points: Curves, comparison: Comparison) -> "Figure | None":
    """A line per kind of row over the number that ends its name, of the runs that did not diverge."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for line in comparison.lines:
        kind, _, size = line.row.rpartition("_")
        value = None if line.diverged else line.metric(wanted.metrics[0], "best_val")
        if wanted.shows(line.row) and value is not None:
            lines.setdefault(kind, []).append((float(size), value))
    level = _trivial(comparison, [row for row in comparison.table.rows if wanted.shows(row)], wanted.metrics)
    return drawing.lines(lines, "size", drawing.words(wanted.metrics[0]), level=level) if lines else None


def _bars(wanted: Wanted, points: Curves, comparison: Comparison) -> "Figure | None":
    """A bar per row, the mean over its seeds, with a tick per seed."""
    values = {
        row: [v for line in comparison.lines if line.row == row and (v := line.metric(wanted.metrics[0])) is not None]
        for row in comparison.table.rows
    }
    shown = {row: found for row, found in values.items() if found}
    if not shown:
        return None
    figure, axes = drawing.subplot(7.2, 0.8 + 0.3 * len(shown))
    for place, found in enumerate(shown.values()):
        axes.barh(place, sum(found) / len(found), color=drawing.colour(0), height=0.6)
        axes.plot(found, [place] * len(found), "k|", markersize=9)
    drawing.name_lines(axes, shown)
    axes.set_xlabel(drawing.words(wanted.metrics[0]))
    level = _trivial(comparison, shown, wanted.metrics)
    if level is not None:
        drawing.trivial(axes, level, upright=True)
        axes.legend(fontsize=7, frameon=False)
    return figure


def _names(comparison: Comparison, rows: list[str]) -> dict[str, str]:
    """The rows as the paper calls them, where that tells them apart; else by their own names, in words."""
    found: dict[str, set[str]] = {row: set() for row in rows}
    for compared in comparison.numbers:
        for row in found.keys() & set(compared.printed.rows):
            found[row].add(compared.printed.label)
    named = {row: labels.pop() if len(labels) == 1 else "" for row, labels in found.items()}
    apart = all(named.values()) and len(set(named.values())) == len(named)
    return named if apart else {row: row.replace("_", " ") for row in rows}


DRAWN: dict[str, Callable[[Wanted, Curves, Comparison], "Figure | None"]] = {
    "curve": _curves,
    "through": _through,
    "sweep": _sweep,
    "bars": _bars,
}


def _dots(shown: list[Compared]) -> "Figure":
    """Published and ours per row, ours with the prediction interval."""
    figure, axes = drawing.subplot(7.2, 0.8 + 0.26 * len(shown))
    for place, compared in enumerate(shown):
        published, ours = compared.printed.value or 0.0, compared.ours or 0.0
        axes.plot([published], [place], "k|", markersize=11, label="published" if place == 0 else None)
        axes.plot([ours], [place], "o", color=drawing.colour(0), markersize=5, label="ours" if place == 0 else None)
        if compared.interval is not None:
            axes.hlines(place, *compared.interval, color=drawing.colour(0), linewidth=1)
    drawing.name_lines(axes, (c.printed.label for c in shown))
    drawing.trivial(axes, _one(compared.trivial for compared in shown), upright=True)
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
            color=drawing.colour(place),
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
