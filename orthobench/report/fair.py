"""The fair track as a document: the models of every fair table side by side, from records alone."""

from math import inf
from pathlib import Path

from orthobench.analysis.fair import FairEntry, FairTable, fair_tables
from orthobench.analysis.ranks import mean_ranks
from orthobench.analysis.statistics import t_interval, wilson
from orthobench.config.table import FAIR
from orthobench.config.words import key, value
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
    found, sections = fair_tables(results, folders), []
    for preset in dict.fromkeys(fair_table.preset for fair_table in found):
        group = [fair_table for fair_table in found if fair_table.preset == preset]
        sections += [overview(group, preset), *(section(fair_table, drawn) for fair_table in group)]
    return Document(FAIR, INTRODUCTION, tuple(one for one in sections if one.facts or one.grids[0].rows), _data(found))


def overview(group: list[FairTable], preset: str) -> Section:
    """All tables of one preset at their greatest lengths."""
    title = document.shortened("All tasks", preset)
    return Section(document.anchor(FAIR, preset), title, title, grids=(ranked(group),))


def section(fair_table: FairTable, drawn: bool = False) -> Section:
    """One table; with its figures where `drawn`."""
    table, preset = fair_table.table, fair_table.preset
    grids = (grid(fair_table, length) for length in fair_table.lengths for grid in (models, sensitivity))
    return Section(
        anchor=document.anchor(table.name, preset),
        title=document.title(table.title, preset),
        heading=document.heading(table, preset),
        facts=_facts(fair_table),
        records=document.records_of(table, fair_table.lines),
        grids=tuple(grids),
        notes=(*fair_table.notes, *table.deviations),
        figures=figures(fair_table) if drawn else {},
        provenance=document.provenance(fair_table.lines),
    )


def models(fair_table: FairTable, length: str) -> Grid:
    """The models at one length, the best one first."""
    rows = [_texts(entry) for entry in fair_table.at(length)]
    return Grid(list(HEADERS), rows, frozenset(HEADERS) - TEXT, length)


def sensitivity(fair_table: FairTable, length: str) -> Grid:
    """What each learning rate came to, the best model first."""
    rows = [
        [e.model, *(_scores(e, rate) for rate in fair_table.rates), e.rate or NOTHING] for e in fair_table.at(length)
    ]
    headers = ["model", *(f"rate {rate}" for rate in fair_table.rates), "chosen"]
    return Grid(headers, rows, frozenset(headers) - TEXT, length, "by learning rate")


def ranked(found: list[FairTable]) -> Grid:
    """The models over all tables of one preset at their greatest lengths, the best mean rank first."""
    columns: dict[str, dict[str, str]] = {}
    scored: list[dict[str, float]] = []
    for fair_table in (one for one in found if one.lines):
        name, length = fair_table.table.name.split("/")[1], fair_table.lengths[-1]
        label = f"{name}, T={length}" if length else name
        entries = {entry.model: entry for entry in fair_table.at(length)}
        columns[label] = {model: number(entry.score, PLACES) for model, entry in entries.items()}
        sign = 1 if fair_table.higher else -1
        scored.append({m: -inf if e.score is None else sign * e.score for m, e in entries.items() if e.lines})
        if length:
            horizons = fair_table.horizons().items()
            columns[f"{name}, horizon"] = {model: str(h) for model, h in horizons if h is not None}
        columns[f"{name}, ms per step"] = {model: number(entry.ms_per_step, 1) for model, entry in entries.items()}
    models = list(dict.fromkeys(model for texts in columns.values() for model in texts))
    ranks = mean_ranks(scored)
    models.sort(key=lambda model: ranks.get(model, inf))
    rows = [
        [model, number(ranks.get(model), 2), *(texts.get(model, NOTHING) for texts in columns.values())]
        for model in models
    ]
    headers = ["model", "mean rank", *columns]
    return Grid(headers, [row for row in rows if any(row[1:])], frozenset(headers) - TEXT)


def _facts(fair_table: FairTable) -> tuple[str, ...]:
    table = fair_table.table
    budget = next((value(word) for word in table.common if key(word) == "params"), None)
    size = "" if budget is None else f"{int(budget):,} parameters, "
    seeds = len(table.planned(fair_table.preset))
    trivial = "" if fair_table.baseline is None else f", trivial {number(fair_table.baseline, PLACES)}"
    return (
        f"Track {table.track}",
        f"{size}rates {', '.join(fair_table.rates)}, {seeds} seed{'s' * (seeds > 1)} each",
        f"ranked by {fair_table.score.name}{trivial}",
    )


def _data(found: list[FairTable]) -> Grid:
    """All models of all tables at every length, with what each of the rates came to."""
    rates = list(dict.fromkeys(rate for fair_table in found for rate in fair_table.rates))
    rows = [
        [
            *(fair_table.table.name, fair_table.preset, length, fair_table.score.name),
            *_texts(entry),
            *(_scores(entry, rate) if rate in entry.rates else NOTHING for rate in rates),
        ]
        for fair_table in found
        for length in fair_table.lengths
        for entry in fair_table.at(length)
    ]
    return Grid(["table", "preset", "T", "metric", *HEADERS, *(f"rate {rate}" for rate in rates)], rows)


def _texts(entry: FairEntry) -> list[str]:
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


def _scores(entry: FairEntry, rate: str) -> str:
    scores = entry.scores(rate)
    if not scores.done:
        return NOTHING
    interval = t_interval(scores.values) if scores.values else None
    spread = "" if interval is None else f" ± {number((interval[1] - interval[0]) / 2, PLACES)}"
    lost = f", {scores.diverged} diverged" if scores.diverged else ""
    return f"{number(scores.mean, PLACES) or 'none'}{spread} (n={len(scores.values)}{lost})"
