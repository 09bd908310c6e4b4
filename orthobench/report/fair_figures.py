"""Figures of the fair track: quality against cost, length curves, what a rate changes, the lengths learnt."""

from math import inf
from typing import TYPE_CHECKING, Any

from orthobench.config.words import key, value
from orthobench.report import drawing
from orthobench.report.named_points import name_points
from orthobench.study.tables.tuning import rate_of
from orthobench.study.verdicts.fair import FairTable
from orthobench.study.verdicts.fair_entry import FairEntry

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, ROW = 7.2, 0.24


def figures(table: FairTable) -> "dict[drawing.Title, Figure]":
    """By title, every figure that the records of a table allow."""
    found = {}
    for case in table.cases:
        where = f"{table.table.title}{', ' if case else ''}{case}"
        entries = [entry for entry in table.at(case) if entry.mean is not None]
        if entries:
            found[drawing.Title(where, "score against multiply-adds")] = _pareto(table, entries)
        if any(entry.scores(entry.at(length)).values for entry in entries for length in table.lengths):
            found[drawing.Title(where, "score by length")] = _curves(table, entries)
        if any(entry.tuned for entry in table.at(case)):
            found[drawing.Title(where, "validation score by rate")] = _sensitivity(table, case)
    if table.cases and all(key(case) == "T" for case in table.cases):
        found[drawing.Title(table.table.title, "lengths that are learnt")] = _solved(table)
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
    """A mark per model; the line joins those that are beaten by none of fewer multiply-adds."""
    figure, axes = drawing.subplot(WIDTH, 4.6)
    points = [(float(entry.budget["multiply_adds"]), entry.mean or 0.0) for entry in entries]
    best = [points[index] for index in front(points, table.higher)]
    axes.step(*zip(*best, strict=True), where="post", color="#888888", linewidth=1, label="best for its cost")
    same: dict[tuple[float, str], tuple[tuple[float, float], list[str]]] = {}
    for place, (entry, point) in enumerate(zip(entries, points, strict=True)):
        colour, marker = drawing.style(place)
        span = entry.interval
        error = [[abs(point[1] - end)] for end in span] if span else None
        axes.errorbar(*point, error, color=colour, marker=marker, linestyle="none", elinewidth=0.7, capsize=2)
        close = point[0], f"{point[1]:.2g}" if abs(point[1]) < 0.01 else f"{point[1]:.2f}"
        same.setdefault(close, (point, []))[1].append(drawing.plain(entry.model))
    axes.set_xscale("log")
    axes.margins(x=0.12)  # for the names at the right
    axes.set_xlabel("multiply-adds per step and sequence")
    _levels(axes, table, entries[0].case)
    if not table.higher and min(score for _, score in points) > 0:
        axes.set_yscale("log")
    axes.set_ylabel(drawing.words(table.score.name))
    axes.legend(fontsize=7, frameon=False)
    name_points(axes, [(point, ", ".join(models)) for point, models in same.values()], points)
    return figure


def _curves(table: FairTable, entries: list[FairEntry]) -> "Figure":
    """A line per model: its mean score at every length with the 95 % interval; the range of training is shaded."""
    figure, axes = drawing.subplot(WIDTH, max(4.6, 0.19 * (len(entries) + 5)))  # as high as the list of names
    axes.axvspan(*table.trained[entries[0].case], color="#888888", alpha=0.15, linewidth=0, label="in training")
    lowest = inf
    for place, entry in enumerate(entries):
        known = [length for length in table.lengths if entry.scores(entry.at(length)).mean is not None]
        means = [entry.scores(entry.at(length)).mean or 0.0 for length in known]
        spans = [entry.interval_of(entry.at(length)) for length in known]
        lowest = min(lowest, *means)
        errors = [
            [abs(mean - span[side]) if span else 0.0 for mean, span in zip(means, spans, strict=True)]
            for side in (0, 1)
        ]
        colour, marker = drawing.style(place)
        axes.errorbar(
            known, means, errors, color=colour, marker=marker, markersize=4, linewidth=1.2, elinewidth=0.7,
            capsize=2, label=drawing.plain(entry.model),
        )  # fmt: skip
    axes.set_xscale("log")
    axes.set_xticks(list(table.lengths), _apart(table.lengths))
    axes.minorticks_off()
    axes.set_xlabel("length in the test")
    _levels(axes, table, entries[0].case, by_length=True)
    if not table.higher and lowest > 0:
        axes.set_yscale("log")  # on which an interval that begins at 0 goes down to the axis
    axes.set_ylabel(drawing.words(table.score.name))
    axes.legend(fontsize=7, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _apart(lengths: tuple[int, ...]) -> list[str]:
    """The lengths as labels of a logarithmic axis; empty where one would lie on another, as 201 on 200."""
    shown, last = list[str](), 0.0
    for length in lengths:
        shown.append(str(length) if length >= 1.2 * last else "")
        last = length if shown[-1] else last
    return shown


def _levels(axes: "Axes", table: FairTable, case: str, by_length: bool = False) -> None:
    """Lines at what the trivial predictor scores, at each length or here, and the order-blind one where it is known."""
    blind = table.order_blind.get(case, {})
    line: dict[str, Any] = {"color": "black", "linewidth": 0.8}
    levels = table.trivial_by_length(case) if by_length else {}
    if len(levels) > 1:
        axes.plot(list(levels), list(levels.values()), **drawing.TRIVIAL_LINE)
    else:
        drawing.trivial(axes, table.trivial(case))
    lengths = [length for length in table.lengths if length in blind]
    if by_length and lengths:
        axes.plot(lengths, [blind[n] for n in lengths], **line, linestyle="dashdot", label="order-blind predictor")
    elif not by_length and None in blind:
        axes.axhline(blind[None], **line, linestyle="dashdot", label="order-blind predictor")


def _sensitivity(table: FairTable, case: str) -> "Figure":
    """A row per model: its validation score at every choice of the rate, the chosen one filled."""
    entries, choices = table.at(case), table.choices(case)
    figure, axes = drawing.subplot(WIDTH, max(1.0 + ROW * len(entries), 0.19 * (len(choices) + 5)))  # as the legend
    shown: list[float] = []
    for place, entry in enumerate(entries):
        values = {choice: entry.validation(choice).mean for choice in choices}
        known = {choice: value for choice, value in values.items() if value is not None}
        if known:
            axes.hlines(place, min(known.values()), max(known.values()), color="#888888", linewidth=1)
        for number, choice in enumerate(choices):
            if choice in known:
                colour, marker = drawing.style(number)
                (mark,) = axes.plot([known[choice]], [place], marker, color=colour, markersize=5)
                mark.set_markerfacecolor(colour if choice == entry.rate else "white")
        shown += known.values()
    for number, choice in enumerate(choices):
        colour, marker = drawing.style(number)
        axes.plot([], [], color=colour, marker=marker, linestyle="none", label=_rate(choice))
    _named(axes, entries)
    drawing.trivial(axes, table.trivial(case), upright=True)
    if shown and min(shown) > 0 and not table.higher:
        axes.set_xscale("log")
    axes.set_xlabel(drawing.words(table.score.validation))
    axes.legend(
        fontsize=7, frameon=False, title="filled: chosen", title_fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5)
    )
    return figure


def _solved(table: FairTable) -> "Figure":
    """A row per model: filled where a length is solved, hollow where it is not, nothing where it was not run."""
    entries = table.at(table.cases[-1])
    figure, axes = drawing.subplot(WIDTH, 1.0 + ROW * len(entries))
    places = {entry.model: place for place, entry in enumerate(entries)}
    lengths = [value(case) for case in table.cases]
    for entry in table.entries:
        if entry.lines and entry.model in places:
            fill = drawing.colour(0) if entry.steps_to_tenth is not None else "white"
            length = int(value(entry.case))
            axes.plot([length], [places[entry.model]], "o", color=drawing.colour(0), markerfacecolor=fill)
    _named(axes, entries)
    axes.set_xscale("log")
    axes.set_xticks([int(length) for length in lengths], lengths)
    axes.minorticks_off()
    axes.set_xlabel("T; filled: the loss falls below a tenth of the trivial predictor's")
    return figure


def _rate(choice: str) -> str:
    """`rate 1e-3, constrained 1e-4` for `1e-3x0.1`."""
    rate, ratio = rate_of(choice)
    return f"rate {_short(rate)}" + ("" if ratio == 1 else f", constrained {_short(rate * ratio)}")


def _short(rate: float) -> str:
    return f"{rate:.0e}".replace("e-0", "e-")


def _named(axes: "Axes", entries: list[FairEntry]) -> None:
    axes.set_yticks(range(len(entries)), [drawing.plain(entry.model) for entry in entries])
    axes.set_ylim(len(entries) - 0.5, -0.5)
