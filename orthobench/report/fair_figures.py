"""Figures of the fair track, as SVG: quality against cost, what a rate changes, and the lengths that are learnt."""

from typing import TYPE_CHECKING

from orthobench.analysis.fair import FairEntry, FairTable
from orthobench.report import drawing
from orthobench.report.drawing import COLOURS, MARKERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, ROW = 7.2, 0.24


def figures(table: FairTable) -> dict[str, str]:
    """SVG text by title, of every figure that the records of a table allow."""
    if not table.lines:
        return {}
    name, length = table.table.title, table.lengths[-1]
    where = f" at T={length}" if length else ""
    entries = [entry for entry in table.at(length) if entry.score is not None]
    found = {}
    timed = [entry for entry in entries if entry.ms_per_step is not None]
    if timed:
        found[f"{name}: quality against cost{where}"] = drawing.svg(_pareto(table, timed))
    if entries:
        found[f"{name}: sensitivity to the learning rate{where}"] = drawing.svg(_sensitivity(table, entries))
    if length:
        found[f"{name}: lengths that are learnt"] = drawing.svg(_horizons(table))
    return found


def front(points: list[tuple[float, float]], higher: bool) -> list[int]:
    """The Pareto front: indices of the (cost, quality) points that no other point beats in both, by rising cost."""
    found: list[int] = []
    sign = 1 if higher else -1
    for index in sorted(range(len(points)), key=lambda i: (points[i][0], -sign * points[i][1])):
        if not found or sign * points[index][1] > sign * points[found[-1]][1]:
            found.append(index)
    return found


def _pareto(table: FairTable, entries: list[FairEntry]) -> "Figure":
    """A mark per model; the line joins those that are beaten by no cheaper one."""
    figure, axes = drawing.subplot(WIDTH, 4.6)
    points = [(entry.ms_per_step or 0.0, entry.score or 0.0) for entry in entries]
    best = [points[index] for index in front(points, table.higher)]
    axes.step(*zip(*best, strict=True), where="post", color="#888888", linewidth=1, label="best for its cost")
    for place, (entry, point) in enumerate(zip(entries, points, strict=True)):
        style = COLOURS[place % len(COLOURS)], MARKERS[place // len(COLOURS) % len(MARKERS)]
        axes.plot(*point, color=style[0], marker=style[1], linestyle="none")
        axes.annotate(drawing.plain(entry.model), point, (5, 3), textcoords="offset points", fontsize=7)
    axes.set_xscale("log")
    axes.set_xlabel("milliseconds per training step")
    _scored(axes, table, "y", [score for _, score in points])
    axes.legend(fontsize=7, frameon=False)
    return figure


def _sensitivity(table: FairTable, entries: list[FairEntry]) -> "Figure":
    """A row per model: its score at every rate, the chosen one filled."""
    figure, axes = drawing.subplot(WIDTH, 1.0 + ROW * len(entries))
    shown: list[float] = []
    for place, entry in enumerate(entries):
        values = {rate: entry.scores(rate).mean for rate in table.rates}
        known = {rate: value for rate, value in values.items() if value is not None}
        axes.hlines(place, min(known.values()), max(known.values()), color="#888888", linewidth=1)
        for number, rate in enumerate(table.rates):
            if rate in known:
                fill = COLOURS[number] if rate == entry.rate else "white"
                (mark,) = axes.plot([known[rate]], [place], MARKERS[number], color=COLOURS[number], markersize=5)
                mark.set_markerfacecolor(fill)
        shown += known.values()
    for number, rate in enumerate(table.rates):
        axes.plot([], [], color=COLOURS[number], marker=MARKERS[number], linestyle="none", label=f"rate {rate}")
    _named(axes, entries)
    _scored(axes, table, "x", shown)
    axes.legend(fontsize=7, frameon=False, title="filled: chosen", title_fontsize=7)
    return figure


def _horizons(table: FairTable) -> "Figure":
    """A row per model: filled where a length is solved, hollow where it is not, nothing where it was not run."""
    entries = table.at(table.lengths[-1])
    figure, axes = drawing.subplot(WIDTH, 1.0 + ROW * len(entries))
    places = {entry.model: place for place, entry in enumerate(entries)}
    for entry in table.entries:
        if entry.lines:
            fill = COLOURS[0] if entry.steps_to_tenth is not None else "white"
            axes.plot([int(entry.length)], [places[entry.model]], "o", color=COLOURS[0], markerfacecolor=fill)
    _named(axes, entries)
    axes.set_xscale("log")
    axes.set_xticks([int(length) for length in table.lengths], table.lengths)
    axes.minorticks_off()
    axes.set_xlabel("T; filled: the loss falls below a tenth of the trivial predictor's")
    return figure


def _named(axes: "Axes", entries: list[FairEntry]) -> None:
    axes.set_yticks(range(len(entries)), [drawing.plain(entry.model) for entry in entries])
    axes.set_ylim(len(entries) - 0.5, -0.5)


def _scored(axes: "Axes", table: FairTable, side: str, values: list[float]) -> None:
    """The axis of the score, with the trivial predictor's where that is near."""
    level, higher = table.baseline, table.higher
    if level is not None and not (higher and min(values) - level > 2 * (max(values) - min(values))):  # not far below
        draw = axes.axhline if side == "y" else axes.axvline
        draw(level, color="black", linewidth=0.8, linestyle="dotted", label="trivial")
    if min(values) > 0 and not higher:
        (axes.set_yscale if side == "y" else axes.set_xscale)("log")
    (axes.set_ylabel if side == "y" else axes.set_xlabel)(table.score.name)
