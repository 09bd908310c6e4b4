"""The fair track as a document: the models of every fair table side by side, from records alone."""

from collections import Counter
from pathlib import Path

from orthobench.config.words import key, value
from orthobench.report import costs, document
from orthobench.report.document import Document, Grid, Section
from orthobench.report.fair_figures import figures
from orthobench.report.quantities import NOTHING, Quantity, Shown, exact, horizon, number, ranked, spread
from orthobench.study.catalogue import SHIPPED, Catalogue
from orthobench.study.statistics.horizon import LEAST_SCORE
from orthobench.study.statistics.statistics import Scores, share_interval
from orthobench.study.tables.table import FAIR, FULL
from orthobench.study.verdicts.fair import FairTable, fair_tables
from orthobench.study.verdicts.fair_claims import outcomes
from orthobench.study.verdicts.fair_entry import UNASKED, FairEntry

INTRODUCTION = f"""\
**2,000 steps: speed of learning.** Where a heading names no other number of steps, a model was trained for 2,000. So
the tables say how fast it learns, and not what it could hold; the searched tables ask that.

Every model at one budget of parameters, with the same rates to choose from, optimizer, steps and data, written by
`orthobench tables`. The rate is the one with the best validation score on seeds that are not reported; `x0.1` says that
the constrained parameters have a tenth of it, and `(edge)` that it lies at the edge of those tried. The *test* score is
that of the weights with the best validation, the mean of the reported seeds ± half of its 95 % interval, or the ends of
that where the metric ends or all seeds score the same; where seeds diverged, the lowest and the highest score of the
others. A model whose interval is not clear of the trivial predictor *did not learn*, and has no score.
*rank*: the best and the worst that the intervals leave open, 1 being the best. *solved*: seeds whose score is above
0.9, where 0 is the trivial predictor and 1 is perfect. The interval takes the scores of seeds for normally distributed;
where some solve a task and others do not, look at this: of five seeds that all solve it one knows with 95 % confidence
no more than that above 0.55 of all seeds do, and of four in five above 0.34. *converged*: seeds that did not diverge.
*to a tenth*: steps until the validation loss is below a tenth of the trivial predictor's, in more than half of the
seeds. *ms a step*, where it was measured: a training step on the processor named below the table, median ± half of the
distance between the quartiles, by `bench --record` while nothing else ran, and in brackets the engine where it is not
the compiled loops that most cells have; two measurements of the same program differ by up to {costs.REPEATED}.
*runs*: those of the tuning and those that are reported, and which code made them. *horizon*: the greatest length at
which the lower end of the interval is above 0.9, where 0 is the trivial predictor of that length, and after *not* the
tested lengths below it at which it is not. *state* is what the model keeps of one sequence from step to step, and
*multiply-adds* are those of one step of one sequence, by the structure of its matrices.
The *order-blind predictor*, where a table has one, knows how often each token was shown, and not in which order.
Intervals are compared pair by pair, and nothing corrects for the number of pairs: among hundreds some part by chance.
A model with a constrained matrix chooses between two rates of it too, and so has more runs of tuning.
Nothing here is a published setting; the papers' own stand in the other tables.
"""
TITLE = "2,000 steps: speed of learning"
UNLEARNT, BLIND = "did not learn", "order-blind predictor"
CLAIMS = "claims, written after the runs"
BY_RATE = "validation score by rate"
DROP = 0.1  # of a normalised score
BUDGETS = {"parameters": "parameters", "state_bytes": "state, bytes", "multiply_adds": "multiply-adds"}
STEP = "ms a step"
SCORED = ("rank", "test", "solved", "converged", "steps to a tenth")
HEADERS = ("model", "n", *BUDGETS.values(), STEP, "rate", *SCORED, "runs")
TEXT = {"model", "rate", "chosen"}
PLACES = 4


def document_of(results: Path, catalogue: Catalogue = SHIPPED, drawn: bool = False) -> Document:
    """The document of all fair tables, an overview of each preset before them; with figures where `drawn`."""
    found, sections = fair_tables(catalogue.tables(), results), []
    for preset in dict.fromkeys(fair_table.preset for fair_table in found):
        group = [fair_table for fair_table in found if fair_table.preset == preset]
        sections += [overview(group, preset), *(section(fair_table, drawn) for fair_table in group)]
    return Document(FAIR, INTRODUCTION, tuple(one for one in sections if one.facts or one.grids[0].rows), _data(found))


def overview(group: list[FairTable], preset: str) -> Section:
    """All tables of one preset."""
    title = document.shortened(TITLE, preset)
    return Section(document.anchor(f"{FAIR}/all", preset), title, title, grids=(together(group),))


def section(fair_table: FairTable, drawn: bool = False) -> Section:
    """Section of a table; with its figures where `drawn`."""
    measured = costs.notes(entry.cost for entry in fair_table.entries if entry.cost)
    kinds = (models, by_length, sensitivity, stated) if fair_table.lengths else (models, sensitivity, stated)
    deviations = fair_table.table.deviations
    return document.of_table(
        fair_table,
        facts=_facts(fair_table),
        grids=tuple(grid(fair_table, case) for case in fair_table.cases for grid in kinds),
        notes=(*fair_table.notes, *_drops(fair_table), *fair_table.made_by.notes, *measured, *deviations),
        figures=figures(fair_table) if drawn else {},
    )


def models(fair_table: FairTable, case: str) -> Grid:
    """The models in one case, the best one first, and after them the trivial predictor."""
    rows = [_cells(fair_table, entry) for entry in fair_table.at(case)]
    blind = fair_table.order_blind.get(case, {}).get(None)
    known = {BLIND: blind, "trivial predictor": fair_table.trivial(case)}
    for name, score in known.items():
        if score is not None:
            rows.append([dict(model=name, test=number(score, PLACES)).get(h, NOTHING) for h in HEADERS])
    timed = any(entry.cost for entry in fair_table.at(case))
    return Grid(list(HEADERS), rows, frozenset(HEADERS) - TEXT, case, aside=frozenset(() if timed else (STEP,)))


def by_length(fair_table: FairTable, case: str) -> Grid:
    """The score at every length, with the control of each length where the task has one, and the horizon."""
    entries = [entry for entry in fair_table.at(case) if entry.lines]
    names = {length: [fair_table.score.name] for length in fair_table.lengths}
    for length in names:
        if any(entry.scores(entry.at(length, UNASKED)).values for entry in entries):
            names[length].append(UNASKED)
    columns = [(length, name) for name in (fair_table.score.name, UNASKED) for length in names if name in names[length]]
    rows = [
        [
            entry.model,
            *(_interval(entry, entry.at(length, name), 2) for length, name in columns),
            horizon(fair_table.horizon(entry), fair_table.holes(entry)),
        ]
        if entry.learnt is not False
        else [entry.model, *[NOTHING] * len(columns), UNLEARNT]
        for entry in entries
    ]
    titles = [f"{length}" if name != UNASKED else f"unasked, {length}" for length, name in columns]
    headers = ["model", *titles, "horizon"]
    low, high = fair_table.trained[case]
    return Grid(headers, rows, frozenset(headers) - TEXT, case, f"by length; {low} to {high} in training")


def sensitivity(fair_table: FairTable, case: str) -> Grid:
    """Validation score of each choice of the rate, the best model first."""
    entries = fair_table.at(case)
    choices = fair_table.choices(case)
    rows = [
        [
            entry.model,
            *(_validation(entry.validation(choice)) for choice in choices),
            entry.rate or NOTHING,
        ]
        for entry in entries
    ]
    headers = ["model", *(f"rate {choice}" for choice in choices), "chosen"]
    return Grid(headers, rows, frozenset(headers) - TEXT, case, BY_RATE)


def stated(fair_table: FairTable, case: str) -> Grid:
    """The claims about a case, with what came of them; none of a shortened table."""
    found = outcomes(fair_table) if fair_table.preset == FULL else []
    rows = [[one.stated.claim, one.word, one.detail] for one in found if one.stated.case == case]
    return Grid(["claim", "status", "figures"], rows, case=case, subject=CLAIMS)


def together(found: list[FairTable]) -> Grid:
    """The normalised scores of the models over all cases of all tables of one preset, the most cases above 0.9 first.

    0 is the trivial predictor and 1 is perfect.
    """
    tables = [one for one in found if one.lines]
    columns: dict[str, dict[str, Shown]] = {}
    above: Counter[str] = Counter()
    for one in tables:
        for case in one.cases:
            label = ", ".join(part for part in (one.table.title, case) if part)
            columns[label] = {e.model: normalised(one, e) for e in one.at(case)}
            held = [e.model for e in one.at(case) if (share := one.normalised(e)) is not None and share > LEAST_SCORE]
            above.update(held)
            columns[label][BLIND] = number(one.blind(case), 2)
    names = list(dict.fromkeys(model for scores in columns.values() for model in scores if model != BLIND))
    names.sort(key=lambda model: -above[model])
    shown = {model: [scores.get(model, NOTHING) for scores in columns.values()] for model in (*names, BLIND)}
    rows = [[model, *scores] for model, scores in shown.items()]
    counts = {model: Quantity(above[model], of=sum(map(bool, scores))) for model, scores in shown.items()}
    rows = [[row[0], counts[row[0]] if row[0] != BLIND else NOTHING, *row[1:]] for row in rows if any(row[1:])]
    headers = ["model", f"above {LEAST_SCORE}", *columns]
    return Grid(headers, rows, frozenset(headers) - TEXT, subject="normalised scores")


def normalised(fair_table: FairTable, entry: FairEntry) -> Shown:
    """A model's normalised score in a case, or why it has none; empty where seeds are missing."""
    if not entry.whole:
        return NOTHING
    if entry.learnt is False:
        return UNLEARNT
    diverged = entry.scores().diverged
    return f"{diverged}/{entry.planned} diverged" if diverged else number(fair_table.normalised(entry), 2)


def _facts(fair_table: FairTable) -> tuple[str, ...]:
    table = fair_table.table
    assert table.tuning is not None
    budget = next((value(word) for word in table.common if key(word) == "params"), None)
    size = "" if budget is None else f"{int(budget):,} parameters, "
    seeds, tuning = len(fair_table.seeds), len(table.tuning.seeds[: len(fair_table.seeds)])
    return (
        f"Track {table.track}",
        f"{size}{_seeds(tuning)} to tune the rate and {_seeds(seeds)} to report",
        f"ranked by {fair_table.score.name}",
    )


def _drops(fair_table: FairTable) -> list[str]:
    """A sentence for each case about the models of which the seeds that chose the rate did much the better."""
    notes = []
    for case in fair_table.cases:
        found = [(entry.model, drop) for entry in fair_table.at(case) if (drop := fair_table.drop(entry)) is not None]
        much = ", ".join(f"{model} by {drop:.2f}" for model, drop in found if drop > DROP)
        if much:
            where = f"{case}: the" if case else "The"
            notes.append(f"{where} seeds that chose the rate scored better than those reported, normalised: {much}.")
    return notes


def _seeds(count: int) -> str:
    return f"{count} seed{'s' * (count > 1)}"


def _data(found: list[FairTable]) -> Grid:
    """All models of all tables in every case, with what each of the rates came to in validation."""
    choices = list(dict.fromkeys(choice for one in found for case in one.cases for choice in one.choices(case)))
    lengths = sorted({length for one in found for length in one.lengths})
    rows = [
        [
            *(one.table.name, one.preset, case, one.score.name),
            *_cells(one, entry),
            one.made_by.words(entry.runs),
            *(_interval(entry, entry.at(length), PLACES) if length in one.lengths else NOTHING for length in lengths),
            *(_validation(entry.validation(choice)) for choice in choices),
        ]
        for one in found
        for case in one.cases
        for entry in one.at(case)
    ]
    headers = ["table", "preset", "case", "metric", *HEADERS, "made by"]
    headers += [f"length {length}" for length in lengths] + [f"validation, rate {choice}" for choice in choices]
    return Grid(headers, rows)


def _cells(fair_table: FairTable, entry: FairEntry) -> list[Shown]:
    scores, solved = entry.scores(), fair_table.solved(entry)
    held, tuned = scores.done - scores.diverged, sum(map(len, entry.tuned.values()))
    converged = Quantity(held, of=scores.done, ends=share_interval(held, scores.done) if scores.diverged else None)
    never = "never" if entry.lines else NOTHING
    runs = f"{tuned} + {len(entry.lines)} of {entry.planned} {fair_table.made_by.mark(entry.runs)}"
    return [
        entry.model,
        NOTHING if entry.hidden_size is None else exact(entry.hidden_size),
        *(number(entry.budget.get(name), 0) for name in BUDGETS),
        costs.step_of_engine(entry.cost) if entry.cost else NOTHING,
        (entry.rate + " (edge)" * entry.choice.edge) if entry.rate else "not tuned yet",
        ranked(fair_table.ranks(entry.case).get(entry.model)),
        UNLEARNT if entry.learnt is False else _interval(entry, fair_table.score.name, PLACES),
        NOTHING if solved is None else Quantity(solved, of=scores.done),
        converged if entry.lines else NOTHING,
        never if entry.steps_to_tenth is None else Quantity(entry.steps_to_tenth),
        Quantity(tuned + len(entry.lines), written=runs.strip()),
    ]


def _interval(entry: FairEntry, name: str, places: int) -> Shown:
    """The mean over the reported seeds with its interval; the ends of their scores where some diverged.

    The number of seeds stands behind it where some diverged or are missing.
    """
    scores = entry.scores(name)
    if not scores.done:
        return NOTHING
    if scores.diverged:
        low, high = (min(scores.values), max(scores.values)) if scores.values else (None, None)
        return Quantity(low, places, to=high, after=f"(n={len(scores.values)}, {scores.diverged} diverged)")
    few = f"(n={len(scores.values)})" if len(scores.values) < entry.planned else ""
    return spread(scores.mean, places, entry.t_interval_of(name), entry.score.bounds, few)


def _validation(scores: Scores) -> Shown:
    if not scores.done:
        return NOTHING
    return f"{scores.diverged} diverged" if scores.diverged else number(scores.mean, PLACES)
