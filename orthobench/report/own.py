"""A user's own runs as sections and figures: a row per combination of settings, the best of each model marked."""

from collections import Counter
from collections.abc import Iterable
from math import floor, log10
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any

from orthobench.common.registry import find
from orthobench.recording.curve import SEAL
from orthobench.report import document, drawing
from orthobench.report.document import Grid, Section
from orthobench.report.numbers import mean
from orthobench.report.quantities import NOTHING, Quantity, Shown, number
from orthobench.study.records.own_runs import OwnRun, text
from orthobench.study.verdicts.own_tables import OwnRow, OwnTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEFT = {"model", "best", "differs"}
DIGITS, FEWEST, MOST = 4, 2, 8  # significant digits; decimals


def section(table: OwnTable, drawn: bool = False) -> Section:
    """Section of a task and length; with its figures where `drawn`."""
    letters = _letters(table)
    runs = [run for row in table.rows for run in row.runs]
    direction = f"the best of each model by {table.validation}, {table.score.direction} is better"
    notes = [f"{letter}: {sentence}." for sentence, letter in letters.items()]
    return Section(
        anchor="own-" + "-".join(text(value) for value in table.case.values()),
        title=table.title,
        heading=table.title,
        facts=(f"{len(runs)} run{'s' * (len(runs) != 1)}", direction),
        grids=(_grid(table, letters),),
        notes=(*notes, *troubles(runs)),
        figures=figures(table) if drawn else {},
        runs=document.runs(run.line for run in runs),
    )


def troubles(runs: Iterable[OwnRun]) -> list[str]:
    """A sentence for each run that diverged or lost its constraint, and for each reason why runs are stale or unsealed.

    Unsealed are those of earlier versions, whose records have no digest of their curves.
    """
    found, stale, unsealed = [], Counter[str](), list[str]()
    names: dict[str, str] = {}
    for run in runs:
        if run.line.diverged:
            found.append(f"{run.line.run_id} diverged: {run.record.get('reason') or 'no reason is recorded'}")
        if run.line.lost is not None:
            found.append(f"{run.line.run_id}: {run.line.lost}")
        if run.line.moved is not None:
            found.append(f"{run.line.run_id} moved, and has no times: {run.line.moved}")
        if run.record.get(SEAL) is None:
            unsealed.append(run.line.run_id)
        for reason in run.stale:
            stale[reason] += 1
            names[reason] = run.line.run_id
    found += [f"stale: {names[r] if n == 1 else f'{n} runs'}, {r}" for r, n in stale.items()]
    if unsealed:
        whose = unsealed[0] if len(unsealed) == 1 else f"{len(unsealed)} runs"
        found.append(f"unsealed: {whose}, recorded without a digest of metrics.csv")
    return [one if one.endswith(".") else f"{one}." for one in found]


def _grid(table: OwnTable, letters: dict[str, str]) -> Grid:
    names = [table.validation, table.score.name]
    decimals = {name: _decimals(row.scores(name).mean for row in table.rows) for name in names}
    headers = ["model", *table.swept, "best", *names, "parameters", "steps", "differs"]
    rows: list[list[Shown]] = []
    for row in table.rows:
        swept = [_setting(row.settings[key]) if key in row.settings else NOTHING for key in table.swept]
        scores = [mean(row.scores(name), decimals[name], table.score.bounds) for name in names]
        lines = [run.line for run in row.runs]
        sizes = [_spread(line.values.get(name) for line in lines) for name in ("parameters/total", "steps")]
        best = "best" if table.best[row.model] == row.name else NOTHING
        rows.append([row.model, *swept, best, *scores, *sizes, letters.get(_difference(row), NOTHING)])
    level = trivial(table)
    if level is not None:
        shown = {"model": "trivial predictor", table.score.name: number(level, decimals[table.score.name])}
        rows.append([shown.get(header, NOTHING) for header in headers])
    return Grid(headers, rows, frozenset(headers) - LEFT - set(table.swept))


def _setting(value: Any) -> Shown:
    return Quantity(value, written=text(value)) if type(value) in (int, float) else text(value)


def _letters(table: OwnTable) -> dict[str, str]:
    """A letter for each of the ways in which rows differ from the others beside what is swept."""
    sentences = dict.fromkeys(_difference(row) for row in table.rows if row.others)
    letters = [*ascii_lowercase, *(a + b for a in ascii_lowercase for b in ascii_lowercase)]
    return dict(zip(sentences, letters, strict=False))


def _difference(row: OwnRow) -> str:
    """`trainer.max_steps=20 (others: 2000), schedule=linear (others: constant)`."""
    return ", ".join(f"{key}={text(value)} (others: {text(usual)})" for key, (value, usual) in row.others.items())


def _spread(values: Iterable[float | None]) -> Shown:
    """A whole number that all runs of a row have, else the least and the greatest."""
    found = sorted({int(value) for value in values if value is not None})
    return Quantity(found[0], to=found[-1]) if found else NOTHING


def _decimals(values: Iterable[float | None]) -> int:
    """Decimals with which the least of some means still has its significant digits."""
    sizes = [abs(value) for value in values if value]
    return min(max(DIGITS - 1 - floor(log10(min(sizes))), FEWEST), MOST) if sizes else FEWEST


def figures(table: OwnTable) -> "dict[drawing.Title, Figure]":
    """By title: the score by each swept number, the curves of the best rows, and the learning curve of a run alone."""
    found: dict[drawing.Title, Figure] = {}
    what, level = drawing.words(table.validation, table.score.unit), trivial(table)
    for key in table.swept:
        lines = _by_number(table, key)
        places = {place for points in lines.values() for place, _ in points}
        if len(places) > 1:
            ratios = min(places) > 0 and max(places) / min(places) > drawing.LOG_RATIO / 10
            title = drawing.Title(table.title, f"{table.validation} by {key}")
            beside = "" if len(table.swept) == 1 else ", best of the other settings"
            found[title] = drawing.lines(lines, key, what + beside, ratios, level)
    curves = {row.model: _curve(row, table.validation) for row in table.rows if table.best[row.model] == row.name}
    shown = {model: points for model, points in curves.items() if points}
    runs = [run for row in table.rows for run in row.runs]
    if len(runs) == 1:
        learning = _learning(table, runs[0])
        return found if learning is None else found | {drawing.Title(runs[0].line.run_id, "learning curve"): learning}
    if shown:
        figure = drawing.lines(shown, "training steps", what, level=level)
        found[drawing.Title(table.title, f"{table.validation} of each model's best settings")] = figure
    return found


def trivial(table: OwnTable) -> float | None:
    """The trivial predictor's score; None where it has none."""
    name = f"baseline/{table.score.name.rpartition('/')[2]}"
    known = (run.line.metric(name) for row in table.rows for run in row.runs)
    return next((value for value in known if value is not None), None)


def _learning(table: OwnTable, run: OwnRun) -> "Figure | None":
    """The scores of one run in training and validation over its steps, those of one name in one panel."""
    curve, name = run.record.get("curve") or {}, table.score.name.rpartition("/")[2]
    task: Any = find("task", run.record["task"], "task")
    units = {metric.name: metric.unit for metric in task.declared()}
    panels = []
    for score in dict.fromkeys((name, "loss")):
        lines = {
            drawing.SPLITS[split]: [(float(step), float(value)) for step, value in points if value is not None]
            for split in ("train", "val")
            if (points := curve.get(f"{split}/{score}"))
        }
        if lines:
            panels.append((score, lines))
    if not panels:
        return None
    figure = drawing.empty(drawing.WIDTH, 0.4 + 2.9 * len(panels))
    every = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (score, lines) in zip(every, panels, strict=True):
        for place, (label, points) in enumerate(lines.items()):
            drawing.line(axes, points, place, label)
        level = run.line.metric(f"baseline/{score}")
        drawing.finish(axes, drawing.words(score, units.get(score, "")), level)
    drawing.whole(every[-1])
    every[-1].set_xlabel("training steps")
    return figure


def _by_number(table: OwnTable, key: str) -> dict[str, list[tuple[float, float]]]:
    """By model, a point per seed of the best row at each value of a setting that is a number."""
    numbers = [row for row in table.rows if type(row.settings.get(key)) in (int, float)]
    best: dict[tuple[str, float], OwnRow] = {}
    for row in numbers:  # the best of a model come first
        best.setdefault((row.model, float(row.settings[key])), row)
    found: dict[str, list[tuple[float, float]]] = {}
    for (model, place), row in best.items():
        found.setdefault(model, []).extend((place, value) for value in row.scores(table.validation).values)
    return {model: points for model, points in found.items() if points}


def _curve(row: OwnRow, name: str) -> list[tuple[float, float]]:
    points = [point for run in row.runs for point in (run.record.get("curve") or {}).get(name, [])]
    return [(float(step), float(value)) for step, value in points if value is not None]
