"""Figures of a searched table: who solves it and in how many steps, score over length, and the search."""

from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING

from orthobench.config.words import key, value
from orthobench.report import drawing
from orthobench.study.tables.composed import ComposedTable
from orthobench.study.verdicts.searched import SearchedTable
from orthobench.study.verdicts.searched_cell import SearchedCell
from orthobench.study.verdicts.trials import steps

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, ROW, CURVES = 7.2, 0.24, 4.6  # inches: of a figure, of a cell's line, of curves
RATE = "optimizer.lr"
NAMED = 7  # cells of which the score by length has a name, each in a colour of its own


def figures(found: SearchedTable) -> "dict[drawing.Title, Figure]":
    """By title, every figure that the records of a table allow."""
    title, known = found.table.title, found.known
    done = [cell for cell in known if cell.complete]
    drawn = {}
    if any(cell.lines for cell in done):
        drawn[drawing.Title(title, "seeds that solve it, and steps")] = _solved(found, done)
    if found.lengths and any(cell.lines for cell in done):
        drawn[drawing.Title(title, "score by length")] = _curves(found, done)
    if known:
        drawn[drawing.Title(title, "the search")] = _search(found, known)
    return drawn


def panels(found: Sequence[SearchedTable]) -> "tuple[Figure | None, Figure | None]":
    """Figures of some tables in one, a panel for each: who solves it in how many steps, and score over length.

    The first is None where no cell solves its case, and both where no cell is complete.
    """
    done = {one.table.name: [cell for cell in one.known if cell.complete and cell.lines] for one in found}
    drawn = [one for one in found if done[one.table.name]]
    solved = [one for one in drawn if any(cell.solved[0] for cell in done[one.table.name])]
    curved = [one for one in drawn if one.lengths]
    first = second = None
    if solved:
        heights = [ROW * len(done[one.table.name]) + 1.3 for one in solved]
        first = drawing.empty(WIDTH, sum(heights))
        axes = first.subplots(len(solved), height_ratios=heights, squeeze=False)[:, 0]
        for place, one in zip(axes, solved, strict=True):
            _mark_solved(place, one, done[one.table.name])
            place.set_title(one.table.title)
    if curved:
        second = drawing.empty(WIDTH, CURVES * len(curved))
        for place, one in zip(second.subplots(len(curved), squeeze=False)[:, 0], curved, strict=True):
            _draw_curves(place, one, done[one.table.name])
            place.set_title(one.table.title)
    return first, second


def _solved(found: SearchedTable, cells: list[SearchedCell]) -> "Figure":
    figure, axes = drawing.subplot(WIDTH, ROW * len(cells) + 1.1)
    _mark_solved(axes, found, cells)
    return figure


def _mark_solved(axes: "Axes", found: SearchedTable, cells: list[SearchedCell]) -> None:
    """A line per cell: a mark per reported seed at the step at which it had solved the case, crosses at the end."""
    runs = [line for cell in cells for line in cell.lines]
    end = found.cap if isfinite(found.cap) else max((line.metric("steps") or 0.0 for line in runs), default=1.0)
    for place, cell in enumerate(cells):
        values = [steps(line) for line in cell.lines]
        able = [step for step in values if isfinite(step)]
        axes.plot(able, [place] * len(able), "o", color=drawing.colour(0), markersize=4, alpha=0.6)
        if len(able) < len(values):
            axes.plot([end], [place], "x", color=drawing.colour(1), markersize=5)
    drawing.name_lines(axes, (f"{cell.name} {cell.solved[0]}/{cell.solved[1]}" for cell in cells))
    axes.set_xlim(0, 1.03 * end)
    axes.set_xlabel("training steps until solved; a cross: some seeds never did")


def _curves(found: SearchedTable, cells: list[SearchedCell]) -> "Figure":
    figure, axes = drawing.subplot(WIDTH, CURVES)
    _draw_curves(axes, found, cells)
    return figure


def _draw_curves(axes: "Axes", found: SearchedTable, cells: list[SearchedCell]) -> None:
    """A line per cell: the median normalised score at every length, of the seeds that solved the case; dashed, of all
    reported seeds where none did. The first cells have names, the others are grey.
    """
    least, most = ComposedTable(found.table, found.preset).lengths(next(iter(found.table.rows)))[1]
    axes.axvspan(least, most, color="#888888", alpha=0.15, linewidth=0, label="in training")
    shown = [cell for cell in cells if cell.lines]
    for place, cell in enumerate(shown):
        scores = cell.holds or cell.reached_by_length
        points = [(length, score) for length, score in sorted(scores.items()) if isfinite(score)]
        colour, marker = drawing.style(place)
        if place >= NAMED:
            label = f"{len(shown) - NAMED} others" if place == NAMED else None
            axes.plot(*zip(*points, strict=True), color="#888888", alpha=0.5, linewidth=0.7, zorder=1, label=label)
            continue
        axes.plot(
            *zip(*points, strict=True), color=colour, linestyle="solid" if cell.holds else "dashed", marker=marker,
            markersize=3.5, linewidth=1.1, label=f"{drawing.plain(cell.name)} {cell.solved[0]}/{cell.solved[1]}",
        )  # fmt: skip
    axes.axhline(0.9, color="#888888", linewidth=0.7, label="held from 0.9")
    if found.order_blind is not None:
        dash = {"color": "#888888", "linewidth": 0.7, "linestyle": "dashdot"}
        axes.axhline(found.order_blind, **dash, label="order-blind predictor")
    drawing.trivial(axes, 0.0)
    axes.set_xscale("log")
    axes.set_xticks(list(found.lengths), [f"{length:,}" for length in found.lengths], fontsize=7)
    axes.minorticks_off()
    axes.set_xlabel("length or delay in the test")
    axes.set_ylabel("score, median of the seeds that solved it\n(dashed: of all, where none did)")
    axes.legend(fontsize=7, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _search(found: SearchedTable, cells: list[SearchedCell]) -> "Figure":
    """A line per cell: a mark per trial at its rate, by the score of its first seed."""
    figure, axes = drawing.subplot(WIDTH, ROW * len(cells) + 1.1)
    for place, cell in enumerate(cells):
        for trial, lines in cell.trials.items():
            words = found.table.rows[f"{cell.name}_trial{trial}"]
            rate = next((float(value(word)) for word in words if key(word) == RATE), None)
            if rate is None:
                continue
            score = cell.normalised(lines[0])
            share = min(max(score, 0.0), 1.0) if isfinite(score) else 0.0
            axes.plot([rate], [place], "o", markersize=5, color=drawing.colour(0), fillstyle="none")
            axes.plot([rate], [place], "o", markersize=5, color=drawing.colour(0), alpha=share, markeredgewidth=0)
            if isfinite(steps(lines[0])):
                axes.plot([rate], [place], "+", markersize=8, color=drawing.colour(0))
            if trial == cell.state.chosen:
                axes.plot([rate], [place], "o", markersize=10, color=drawing.colour(1), fillstyle="none")
    drawing.name_lines(axes, (cell.name for cell in cells))
    axes.set_xscale("log")
    marks = "darker: a higher score of its first seed; plus: it solved the case; ring: chosen"
    axes.set_xlabel(f"learning rate of a trial\n{marks}")
    return figure
