"""results/tables/fair.md, .csv and .tex: the models of the fair track side by side, from records alone."""

from math import inf
from pathlib import Path

from orthobench.analysis.fair import Contest, Entry, contests
from orthobench.analysis.ranks import mean_ranks
from orthobench.analysis.statistics import t_interval, wilson
from orthobench.config.table import FULL
from orthobench.report.markup import csv_table, latex_table, markdown_table, md
from orthobench.report.wording import NOTHING, number

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
PLACES = 4


def render(results: Path, folders: tuple[Path, ...] = ()) -> dict[str, str]:
    """The tables by suffix."""
    found = contests(results, folders)
    return {"md": _markdown(found), "csv": _csv(found), "tex": _latex(found)}


def heading(contest: Contest) -> str:
    """Title of a table, with its length when it is shortened."""
    name = f"{contest.title} (`{contest.table.name}`)"
    words = [] if contest.preset == FULL else contest.table.presets[contest.preset].overrides
    return name + (f", shortened to {contest.preset}: {' '.join(words)}" if words else "")


def facts(contest: Contest) -> str:
    """What holds for every model of a table."""
    budget = next(word.partition("=")[2] for word in contest.table.common if word.startswith("params="))
    seeds = len(contest.table.planned(contest.preset))
    told = f"Track fair; {int(budget):,} parameters, rates {', '.join(contest.rates)}"
    told += f", {seeds} seed{'s' * (seeds > 1)} each; ranked by {contest.score.name}"
    return told + (f", trivial {number(contest.baseline, PLACES)}" if contest.baseline is not None else "")


def lines_of(contest: Contest, length: str) -> tuple[list[str], list[list[str]]]:
    """Headers and lines of one length, the best model first."""
    return list(HEADERS), [_cells(entry) for entry in contest.at(length)]


def sensitivity_of(contest: Contest, length: str) -> tuple[list[str], list[list[str]]]:
    """Headers and lines of what each rate came to, the best model first."""
    rows = [[e.model, *(_scores(e, rate) for rate in contest.rates), e.rate or NOTHING] for e in contest.at(length)]
    return ["model", *(f"rate {rate}" for rate in contest.rates), "chosen"], rows


def overview_of(found: list[Contest]) -> tuple[list[str], list[list[str]]]:
    """Headers and lines of all tables of one preset at their greatest lengths, the best mean rank first."""
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
    return ["model", "mean rank", *columns], [row for row in rows if any(row[1:])]


def by_preset(found: list[Contest]) -> dict[str, list[Contest]]:
    """Tables that may be compared with one another: those of one preset, full ones first."""
    return {preset: [c for c in found if c.preset == preset] for preset in dict.fromkeys(c.preset for c in found)}


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


def _markdown(found: list[Contest]) -> str:
    parts = ["# fair\n", INTRODUCTION]
    for preset, group in by_preset(found).items():
        headers, rows = overview_of(group)
        if rows:
            title = "All tasks" + ("" if preset == FULL else f", shortened to {preset}")
            parts.append(f"## {title}\n\n{markdown_table(headers, rows)}")
        for contest in group:
            where = f"[Records](../records/{contest.table.name}.csv)" if contest.lines else "No records yet."
            parts.append(f"## {md(heading(contest))}\n\n{md(facts(contest))}. {where}\n")
            for length in contest.lengths:
                parts += [f"### T = {length}\n"] if length else []
                parts.append(markdown_table(*lines_of(contest, length)))
                parts.append(markdown_table(*sensitivity_of(contest, length)))
            parts.append("".join(f"- {md(note)}\n" for note in contest.table.deviations))
    return "\n".join(parts)


def _csv(found: list[Contest]) -> str:
    rows = [
        [contest.table.name, contest.preset, length, contest.score.name, *line, *rates[1:-1]]
        for contest in found
        for length in contest.lengths
        for line, rates in zip(lines_of(contest, length)[1], sensitivity_of(contest, length)[1], strict=True)
    ]
    rates = [f"rate {rate}" for rate in found[0].rates]
    return csv_table(["table", "preset", "T", "metric", *HEADERS, *rates], rows)


def _latex(found: list[Contest]) -> str:
    parts = ["% fair: written by `orthobench tables`; needs the package longtable\n"]
    for preset, group in by_preset(found).items():
        headers, rows = overview_of(group)
        if rows:
            parts.append(latex_table(f"The fair track, {preset}", headers, rows))
        for contest in group:
            for length in contest.lengths:
                caption = heading(contest) + (f", T = {length}" if length else "")
                parts.append(latex_table(caption, *lines_of(contest, length)))
                parts.append(latex_table(f"{caption}, by learning rate", *sensitivity_of(contest, length)))
    return "\n".join(parts)
