"""The searched tables as a document: which cells solve a case, how fast, how far they hold it, and the claims."""

from collections.abc import Iterable
from dataclasses import replace
from math import inf, isfinite
from pathlib import Path

from orthobench.config.words import key, value
from orthobench.report import costs, document
from orthobench.report.document import Document, Grid, Section
from orthobench.report.quantities import NOTHING, Quantity, Shown, number
from orthobench.report.searched_figures import figures
from orthobench.study.catalogue import SHIPPED, Catalogue
from orthobench.study.statistics.ranks import FEWEST, correlation
from orthobench.study.statistics.status import Interval
from orthobench.study.tables.claim import StatedClaim
from orthobench.study.verdicts.factorial import cut_off, effects, middle
from orthobench.study.verdicts.searched import SearchedTable, searched_tables
from orthobench.study.verdicts.searched_cell import GROUPS, UNSOLVED, SearchedCell, in_order
from orthobench.study.verdicts.searched_claims import outcomes, runs_before

PART = "fair2"  # the name of the document's files
INTRODUCTION = """\
Two questions, never mixed: does a cell learn the case, and how far does it hold what it has learnt? Every cell has a
search of its own, as long as that of any other (`search:` in its file), and is reported on fresh seeds at the trial
that was chosen. *solved*: reported seeds of which the validation score was at the table's threshold at so many
validations in a row, with the exact 95 % interval of their share (Clopper and Pearson). *steps*: training steps until
then, the median and the quartiles; a run that was ended before counts as more than the greatest number of steps.
*horizon*: the greatest length up to which the median seed of those that solved the case scores above 0.9 at every
tested length, where 0 is the trivial predictor and 1 is perfect; `>=` where it is the longest that was tested.
*easy to tune*: trials of the first stage, one seed each, that solve the case; `orthobench plot` draws all trials.
*score*: the test score of all reported seeds in the range of training, the median and the quartiles, on the same scale.
A silent network may score below 0. *runs*: those of the search, and those that are reported; a trial that learnt
nothing goes no further. Cells are grouped, not ranked: nothing is averaged over seeds that solve a case and seeds that
do not. A cell of which no trial has a validation loss below the trivial predictor's *did not learn*, and has no number.
Cells whose search goes on are named below the table.
"""
HEADERS = ("cell", "group", "solved", "steps", "horizon", "score", "easy to tune", "ms a step", "parameters",
           "state, bytes", "chosen", "runs")  # fmt: skip
TEXT = {"cell", "group", "chosen"}


def document_of(results: Path, catalogue: Catalogue = SHIPPED, drawn: bool = False) -> Document:
    """The document of all searched tables of which something is recorded; with figures where `drawn`."""
    found = searched_tables(catalogue.tables(), results)
    return Document(PART, INTRODUCTION, tuple(section(table, drawn) for table in found), _data(found))


def section(found: SearchedTable, drawn: bool = False) -> Section:
    """Section of a table; with its figures where `drawn`."""
    table = found.table
    notes = [*unfinished(found), *blind(found), *edges(found), *cut_horizons(found), *changed_groups(found)]
    measured = costs.notes(cell.cost for cell in found.known if cell.cost)
    return document.of_table(
        found,
        facts=_facts(found),
        grids=(cells(found), by_length(found), by_length(found, solved=False), worth(found), stated(found)),
        notes=(*notes, *found.notes, *found.made_by.notes, *measured, *table.deviations),
        figures=figures(found) if drawn else {},
    )


def cells(found: SearchedTable) -> Grid:
    """The cells by group."""
    rows = [_cells(found, cell) for cell in found.known if cell.complete]
    timed = any(cell.cost for cell in found.known)
    aside = frozenset(() if timed else ("ms a step",))
    return Grid(list(HEADERS), rows, frozenset(HEADERS) - TEXT, aside=aside)


def by_length(found: SearchedTable, solved: bool = True) -> Grid:
    """Median normalised scores at every length: of the seeds that solved the case, or of cells that none solves."""
    headers, rows = ["cell", "seeds", *map(str, found.lengths)], []
    for cell in (cell for cell in found.known if cell.complete and found.lengths):
        scores, count = (cell.holds, cell.solved[0]) if solved else (cell.reached_by_length, len(cell.lines))
        if scores if solved else cell.group == UNSOLVED:
            rows.append([cell.name, Quantity(count), *(_score(scores.get(length)) for length in found.lengths)])
    of = "the seeds that solved it" if solved else "all reported seeds, of cells that no seed solves"
    return Grid(headers, rows, frozenset(headers) - TEXT, subject=f"by length, median of {of}")


def stated(found: SearchedTable) -> Grid:
    """The claims, with what came of them and how many runs were there when they were written."""
    rows = [
        [one.stated.claim, one.stated.source or "ours", when(one.stated, found), one.word, one.detail]
        for one in outcomes(found)
    ]
    return Grid(["claim", "source", "written", "status", "figures"], rows, subject="claims")


def when(stated: StatedClaim, found: SearchedTable) -> str:
    """`before the runs` of its cells, `after 47 of 76 runs`, `after all 76 runs`, or `not said` where that is so."""
    runs = runs_before(stated, found)
    if runs is None:
        return "not said"
    before, there = runs
    if not before:
        return "before the runs"
    return f"after {f'all {there}' if before == there else f'{before} of {there}'} run{'s' * (there > 1)}"


def unfinished(found: SearchedTable) -> list[str]:
    """Name the cells that are not complete, which no number above is of."""
    begun = [f"{cell.name} ({cell.recorded} runs)" for cell in found.cells if cell.recorded and not cell.complete]
    bare = [cell.name for cell in found.cells if not cell.recorded and not cell.complete]
    told = {"Begun, and not complete": begun, "Not run yet": bare}
    return [f"{words}: {', '.join(names)}." for words, names in told.items() if names]


def blind(found: SearchedTable) -> list[str]:
    """Tell the score of the order-blind predictor, where it is known."""
    if found.order_blind is None:
        return []
    return [f"Order-blind predictor, which knows how often each token is shown, and not when: {found.order_blind:.2f}."]


def edges(found: SearchedTable) -> list[str]:
    """Name the settings of which the chosen trial has the least or greatest value of a cell's trials, unless few."""
    told = [f"{cell.name} ({', '.join(ends)})" for cell in found.known if (ends := ends_of(found, cell))]
    words = "The chosen trial has the least or the greatest value of all of the cell's trials"
    return [f"{words}: {'; '.join(told)}."] if told else []


def ends_of(found: SearchedTable, cell: SearchedCell) -> list[str]:
    """The settings of which a complete cell's chosen trial has the least or greatest value of all, unless few."""
    if not (cell.complete and cell.lines and len(cell.trials) >= FEWEST):
        return []
    trials = {trial: _searched(found, cell, trial) for trial in cell.trials}
    chosen = trials[cell.state.chosen or 0]
    return [name for name, text in chosen.items() if _is_end(text, [trial[name] for trial in trials.values()])]


def _searched(found: SearchedTable, cell: SearchedCell, trial: int) -> dict[str, str]:
    """The values of a trial by setting, with the ratio of the rates in place of the second one."""
    own = dict(word.split("=", 1) for word in settings(found, cell, trial))
    if "lr_recurrent" in own:
        own["ratio"] = f"{float(own.pop('lr_recurrent')) / float(own['lr']):.3g}"
    return own


def _is_end(text: str, values: list[str]) -> bool:
    """Return True if a number is the least or the greatest of three or more; words are neither."""
    try:
        numbers = [float(value) for value in values]
    except ValueError:
        return False
    return len(set(numbers)) > 2 and float(text) in (min(numbers), max(numbers))


def worth(found: SearchedTable) -> Grid:
    """The effects of the table's design, where it has one of which all cells are complete."""
    headers = ["design", "effect", "log-odds that a seed solves it", "factor of the horizon", "score"]
    headers += [f"score at {middle(found.lengths):,}"] if found.lengths else []
    rows = []
    for one in effects(found):
        told = (one.solved, one.score, *(one.far,) * bool(found.lengths))
        on_solved, *scores = (NOTHING if own is None else _effect(*own) for own in told)
        horizon = NOTHING if one.horizon is None else _factor(*one.horizon)
        rows.append([one.family, one.name, on_solved, horizon, *scores])
    return Grid(headers, rows, subject="effects, each beside the first level of its factor, with 95 % intervals")


def cut_horizons(found: SearchedTable) -> list[str]:
    """Tell how many of the horizons behind the effects may be longer than what was tested."""
    count, of = cut_off(found)
    told = f"{count} of {of} horizons behind the effects are the longest tested length, and may be longer."
    return [told] if count else []


def changed_groups(found: SearchedTable) -> list[str]:
    """Tell how many cells are in another group than in the table that this one is like, and whether the order holds."""
    there = {cell.name: (place, cell.group) for place, cell in in_order(found.beside, in_seconds=False)}
    here = in_order((cell for cell in found.cells if cell.complete), in_seconds=False)
    both = [(place, cell, *there[cell.name]) for place, cell in here if cell.name in there]
    if not both:
        return []
    moved = [f"{one.name} ({GROUPS[was]}, here {GROUPS[one.group]})" for _, one, _, was in both if one.group != was]
    told = f": {', '.join(moved)}" if moved else ""
    notes = [f"{len(moved)} of {len(both)} cells are in another group than in {found.table.like}{told}."]
    if len(both) >= FEWEST:
        found_both = correlation([place for place, *_ in both], [place for *_, place, _ in both])
        alike = "There is no correlation of the two orders, as nothing tells the cells of one of them apart."
        notes.append(alike if found_both is None else _correlated(*found_both))
    return notes


def _correlated(value: float, interval: Interval) -> str:
    few = ": too few cells to tell" if interval[0] <= 0 <= interval[1] else ""
    return f"Spearman's correlation of the two orders is {value:.2f} [{interval[0]:.2f}, {interval[1]:.2f}]{few}."


def _effect(value: float, interval: Interval) -> Quantity:
    return Quantity(value, 2, ends=interval, signed=True)


def _factor(value: float, interval: Interval) -> Quantity:
    return Quantity(2**value, 2, ends=(2 ** interval[0], 2 ** interval[1]))


def settings(found: SearchedTable, cell: SearchedCell, trial: int) -> list[str]:
    """The values of a trial, such as `lr=0.01`, without the names of their groups."""
    own = found.table.rows[f"{cell.name}_trial{trial}"]
    words = [word for word in own if word not in found.table.rows.cells[cell.name]]  # type: ignore[attr-defined]
    return [f"{key(word).partition('.')[2]}={value(word)}" for word in words]


def _cells(found: SearchedTable, cell: SearchedCell) -> list[Shown]:
    (count, of), (easy, trials), chosen = cell.solved, cell.solved_in_first_stage, cell.state.chosen
    return [
        cell.name,
        GROUPS[cell.group],
        Quantity(count, of=of, ends=cell.interval) if cell.lines else NOTHING,
        _steps(found, cell),
        horizon(cell) if cell.solved[0] and cell.lengths else NOTHING,
        reached(cell),
        Quantity(easy, of=trials) if cell.state.learnt is not False else NOTHING,
        costs.step_of_engine(cell.cost) if cell.cost else NOTHING,
        number(cell.budget.get("parameters"), 0),
        number(cell.budget.get("state_bytes"), 0),
        NOTHING if chosen is None else " ".join(settings(found, cell, chosen)),
        Quantity(cell.recorded, written=f"{cell.recorded - len(cell.lines)} + {len(cell.lines)}"),
    ]


def _steps(found: SearchedTable, cell: SearchedCell) -> Shown:
    """The quartiles of the steps until solved, `over 6,000` where a run was ended before."""
    if cell.steps is None:
        return NOTHING
    shown = _quartiles(cell.steps)
    return replace(shown, written=str(shown).replace("beyond", f"over {found.cap:,.0f}"))


def horizon(cell: SearchedCell) -> Quantity:
    """The horizon: `>= 10,240` at the longest length that was tested."""
    return Quantity(cell.horizon, before=">=" * (cell.horizon in cell.lengths[-1:]))


def reached(cell: SearchedCell) -> Shown:
    """The quartiles of the scores, a diverged seed's being the worst: `6 of 10 diverged` where the median is one."""
    if cell.reached is None:
        return NOTHING
    if cell.reached[1] == -inf:
        return f"{cell.diverged} of {len(cell.lines)} diverged" if cell.diverged else NOTHING
    shown = _quartiles(cell.reached, 2)
    return replace(shown, written=str(shown).replace("-inf", "diverged")) if cell.reached[0] == -inf else shown


def _quartiles(found: tuple[float, float, float], decimals: int = 0) -> Quantity:
    low, middle, high = found
    return Quantity(middle, decimals, ends=None if low == middle == high == inf else (low, high))


def _score(score: float | None) -> Shown:
    """A normalised score with two decimals, whose zero has no sign."""
    return NOTHING if score in (None, -inf) else Quantity(round(score, 2) + 0.0, 2)


def _facts(found: SearchedTable) -> tuple[str, ...]:
    table, given = found.table, {key(word): value(word) for word in found.table.common}
    assert table.search is not None
    size = f"{int(given['params']):,} parameters, " if "params" in given else ""
    first, *others = table.search.stages
    more = "".join(f", the best {stage.trials} of them on {len(stage.seeds)} more" for stage in others)
    metric, most = given.get("stopping.metric", "score of the task"), found.cap
    return (
        f"Track {table.track}",
        f"{size}search: {first.trials} trials on {len(first.seeds)} seed{'s' * (len(first.seeds) > 1)}{more}; "
        f"{len(found.seeds)} seed{'s' * (len(found.seeds) > 1)} reported",
        f"solved: validation {metric} at {given['stopping.threshold']}, {given['stopping.hold']} times in a row",
        *((f"at most {most:,.0f} steps",) if isfinite(most) else ()),
    )


def _data(found: Iterable[SearchedTable]) -> Grid:
    """All cells of all tables, for a spreadsheet."""
    rows = [
        [one.table.name, one.preset, *_cells(one, cell), one.made_by.words([line.run_id for line in cell.lines])]
        for one in found
        for cell in one.known
    ]
    return Grid(["table", "preset", *HEADERS, "made by"], rows)
