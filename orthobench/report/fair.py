"""The fair track as a document: the models of every fair table side by side, from records alone."""

from math import inf
from pathlib import Path

from orthobench.analysis.fair import Contest, Entry, contests
from orthobench.analysis.ranks import mean_ranks
from orthobench.analysis.statistics import t_interval, wilson
from orthobench.config import table as experiment
from orthobench.config.table import FAIR
from orthobench.report import document
from orthobench.report.document import Document, Grid, Section
from orthobench.report.fair_figures import figures
from orthobench.report.paper import NOTHING, number

INTRODUCTION = """\
Every model at one budget of parameters, with the same learning rates, optimizer, steps and data, written by
`orthobench tables`. Per model and length the rate with the best validation score is chosen; the *test* score is that of
the weights with the best validation, mean ± half of the 95 % interval over n seeds. *to a tenth*: training until the
validation loss is below a tenth of the trivial predictor's, in more than half of the seeds. *horizon*: the greatest
length at which that happens. *peak memory* is that of the whole process. Nothing here is a published setting; the
papers' own stand in the other tables.
"""
HEADERS = (
    "model",
    "n",
    "parameters",
    "rate",
    "test",
    "converged",
    "ms per step",
    "steps to a tenth",
    "seconds to a tenth",
    "peak memory, MiB",
    "runs",
)
TEXT = {"model", "rate", "chosen"}
PLACES = 4


def filled(results: Path, folders: tuple[Path, ...] = (), drawn: bool = False) -> Document:
    """The document of all fair tables, an overview of each preset before them; with figures where `drawn`."""
    found, sections = contests(results, folders), []
    for preset in dict.fromkeys(contest.preset for contest in found):
        group = [contest for contest in found if contest.preset == preset]
        sections += [overview(group, preset), *(section(contest, drawn) for contest in group)]
    return Document(FAIR, INTRODUCTION, tuple(one for one in sections if one.facts or one.grids[0].rows), _data(found))


def overview(group: list[Contest], preset: str) -> Section:
    """All tables of one preset at their greatest lengths."""
    title = document.shortened("All tasks", preset)
    return Section(document.anchor(FAIR, preset), title, title, grids=(ranked(group),))


def section(contest: Contest, drawn: bool = False) -> Section:
    """One table; with its figures where `drawn`."""
    table, preset = contest.table, contest.preset
    grids = (grid(contest, length) for length in contest.lengths for grid in (models, sensitivity))
    return Section(
        anchor=document.anchor(table.name, preset),
        title=document.title(table.title, preset),
        heading=document.heading(table, preset),
        facts=_facts(contest),
        records=document.records_of(table, contest.lines),
        grids=tuple(grids),
        notes=table.deviations,
        figures=figures(contest) if drawn else {},
        provenance=document.provenance(contest.lines),
    )


def models(contest: Contest, length: str) -> Grid:
    """The models at one length, the best one first."""
    rows = [_cells(entry) for entry in contest.at(length)]
    return Grid(list(HEADERS), rows, frozenset(HEADERS) - TEXT, length)


def sensitivity(contest: Contest, length: str) -> Grid:
    """What each learning rate came to, the best model first."""
    rows = [[e.model, *(_scores(e, rate) for rate in contest.rates), e.rate or NOTHING] for e in contest.at(length)]
    headers = ["model", *(f"rate {rate}" for rate in contest.rates), "chosen"]
    return Grid(headers, rows, frozenset(headers) - TEXT, length, "by learning rate")


def ranked(found: list[Contest]) -> Grid:
    """The models over all tables of one preset at their greatest lengths, the best mean rank first."""
    columns: dict[str, dict[str, str]] = {}
    scored: list[dict[str, float]] = []
    for contest in (one for one in found if one.lines):
        name, length = contest.table.name.split("/")[1], contest.lengths[-1]
        label = f"{name}, T={length}" if length else name
        entries = {entry.model: entry for entry in contest.at(length)}
        columns[label] = {model: number(entry.score, PLACES) for model, entry in entries.items()}
        sign = 1 if contest.higher else -1
        scored.append({m: -inf if e.score is None else sign * e.score for m, e in entries.items() if e.lines})
        if length:
            horizons = contest.horizons().items()
            columns[f"{name}, horizon"] = {model: str(h) for model, h in horizons if h is not None}
        columns[f"{name}, ms per step"] = {model: number(entry.ms_per_step, 1) for model, entry in entries.items()}
    models = list(dict.fromkeys(model for cells in columns.values() for model in cells))
    ranks = mean_ranks(scored)
    models.sort(key=lambda model: ranks.get(model, inf))
    rows = [
        [model, number(ranks.get(model), 2), *(cells.get(model, NOTHING) for cells in columns.values())]
        for model in models
    ]
    headers = ["model", "mean rank", *columns]
    return Grid(headers, [row for row in rows if any(row[1:])], frozenset(headers) - TEXT)


def _facts(contest: Contest) -> tuple[str, ...]:
    table = contest.table
    budget = next((experiment.value(word) for word in table.common if experiment.key(word) == "params"), None)
    size = "" if budget is None else f"{int(budget):,} parameters, "
    seeds = len(table.planned(contest.preset))
    trivial = "" if contest.baseline is None else f", trivial {number(contest.baseline, PLACES)}"
    return (
        f"Track {table.track}",
        f"{size}rates {', '.join(contest.rates)}, {seeds} seed{'s' * (seeds > 1)} each",
        f"ranked by {contest.score.name}{trivial}",
    )


def _data(found: list[Contest]) -> Grid:
    """All models of all tables at every length, with what each of the rates came to."""
    rates = list(dict.fromkeys(rate for contest in found for rate in contest.rates))
    rows = [
        [
            *(contest.table.name, contest.preset, length, contest.score.name),
            *_cells(entry),
            *(_scores(entry, rate) if rate in entry.rates else NOTHING for rate in rates),
        ]
        for contest in found
        for length in contest.lengths
        for entry in contest.at(length)
    ]
    return Grid(["table", "preset", "T", "metric", *HEADERS, *(f"rate {rate}" for rate in rates)], rows)


def _cells(entry: Entry) -> list[str]:
    scores, diverged = entry.scores(), entry.scores().diverged
    low, high = wilson(scores.done - diverged, scores.done) if diverged else (0.0, 0.0)
    converged = f"{scores.done - diverged}/{scores.done}" + (f" [{low:.2f}, {high:.2f}]" if diverged else "")
    parameters = entry.median("parameters/total")
    seconds = entry.seconds_to_tenth
    never = "never" if entry.lines else NOTHING
    return [
        entry.model,
        entry.hidden_size,
        number(parameters, 0),
        entry.rate or NOTHING,
        _scores(entry, entry.rate) if entry.rate else NOTHING,
        converged if entry.lines else NOTHING,
        number(entry.ms_per_step, 1),
        never if entry.steps_to_tenth is None else number(entry.steps_to_tenth, 0),
        never if seconds is None else number(seconds, 1),
        number(entry.peak_mib, 0),
        f"{entry.done} of {entry.planned * len(entry.rates)}",
    ]


def _scores(entry: Entry, rate: str) -> str:
    scores = entry.scores(rate)
    if not scores.done:
        return NOTHING
    interval = t_interval(scores.values) if scores.values else None
    spread = "" if interval is None else f" ± {number((interval[1] - interval[0]) / 2, PLACES)}"
    lost = f", {scores.diverged} diverged" if scores.diverged else ""
    return f"{number(scores.mean, PLACES) or 'none'}{spread} (n={len(scores.values)}{lost})"
