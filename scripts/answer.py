"""Write docs/results/answer.md and its figures: what the searched tables of results/records answer.

python scripts/answer.py             what is not what the records say
python scripts/answer.py --write     write them
"""

import sys
import textwrap
from collections.abc import Collection
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Any

from orthobench.config.words import key, value
from orthobench.report import drawing, searched, searched_figures
from orthobench.report.document import Grid
from orthobench.report.markup import markdown_table
from orthobench.report.renewing import renew
from orthobench.study.catalogue import SHIPPED
from orthobench.study.tables.composed import ComposedTable
from orthobench.study.tables.search import TRIAL
from orthobench.study.tables.table import FULL, SEARCHED, Table
from orthobench.study.verdicts.factorial import middle
from orthobench.study.verdicts.fair import fair_table
from orthobench.study.verdicts.searched import SearchedTable, searched_table
from orthobench.study.verdicts.searched_cell import GROUPS, UNLEARNT, UNSOLVED, SearchedCell
from orthobench.study.verdicts.searched_claims import FAILED, UNRUN, outcomes, rows_of
from orthobench.study.verdicts.trials import solved

ROOT = Path(__file__).resolve().parents[1]
RESULTS, FOLDER = ROOT / "results", ROOT / "docs" / "results"
PAGE, SOLVED, LENGTHS = FOLDER / "answer.md", FOLDER / "answer-solved.svg", FOLDER / "answer-lengths.svg"
NEAREST = 3  # cells that are named of those that do not solve a case
SHOWN = ("cell", "solved", "steps", "horizon", "score", "ms a step", "state, bytes")
FAR = "score at longer delays or lengths"
BEFORE = {  # the same case of the first protocol, with 2,000 steps
    "fair2/cued_copying": ("fair/cued_copying", "digits=10"),
    "fair2/group_word": ("fair/group_word", ""),
    "fair2/copying": ("fair/copying", "T=200"),
    "fair2/adding": ("fair/adding", "T=200"),
}
HEAD = """\
# The answer

Which cell holds memory best? [The second protocol](../explanation/fair2.md) asks it with a search for each cell.
This page is made from the records, by `python scripts/answer.py --write`. It covers only cells whose search and ten
reported seeds are complete. [All numbers](../../results/tables/fair2.md).
"""
LEGEND = """\
A seed *solves* a case when its validation score is at least 0.99 three times in a row, where 0 is the trivial predictor
and 1 is perfect; *steps* says when. The *horizon* is the longest test up to which their median is above 0.9.
*score*: median and quartiles of all ten seeds, in the range of training. *ms a step*: a training step on one thread.
The order-blind predictor knows which tokens were shown, and not when.
"""
TESTED = """\
Cells are compared in the range of training, by one-sided exact tests that are paired by seed, with Holm's correction
over the claims of a table. Ten seeds allow no p below 1/1,024 before it. A test knows the spread of seeds at the chosen
trial; another search may choose another. *held in training*: the medians say otherwise at a tested length.
*written* counts runs of this table; what the first protocol found for the same case, with seeds 1 to 5, was known.
"""


@cache
def tables() -> dict[str, SearchedTable]:
    """Every searched table, by name."""
    return {one.name: searched_table(one, RESULTS) for one in SHIPPED.tables() if one.track == SEARCHED}


def cases() -> list[SearchedTable]:
    """The tables that ask of every cell: neither a design of factors nor a look at whether another table is robust."""
    return [one for one in tables().values() if not one.table.factors and one.table.like is None]


def complete(found: SearchedTable) -> list[SearchedCell]:
    """The cells of a table of which nothing is left to run, in the order of its rows."""
    return [cell for cell in found.known if cell.complete]


def budget(found: SearchedTable) -> str:
    """The case with its budget, such as `Cued copying, 10 digits (6,741 parameters, at most 6,000 steps)`."""
    given = {key(word): value(word) for word in found.table.common}
    return f"{found.table.title} ({int(given['params']):,} parameters, at most {found.cap:,.0f} steps)"


def contradictions() -> str:
    """What contradicts a claim of a paper, and what contradicts the first protocol."""
    against = [
        f"A claim after {one.stated.source} is not held: *{one.stated.claim.rstrip('.')}* ({budget(found)}: "
        f"{one.detail}{beside(found)}{edge(found, one.stated.test)})."
        for found in tables().values()
        for one in outcomes(found)
        if one.word == FAILED and one.stated.source
    ]
    papers = against or ["No complete row contradicts a claim of a paper."]
    changes = [f"{budget(found)}, {told}." for found in cases() if (told := changed(found))]
    by = "The [first protocol](findings.md), which has 2,000 steps and no search,"
    first = [f"{by} has another answer. {' '.join(changes)}"] if changes else []
    alike = f"{by} has no other answer: no network held a case there and fails here, or the other way round."
    return " ".join([*papers, *(first or [alike])])


def beside(found: SearchedTable) -> str:
    """Tell that no other cell solves the case either, where that is so."""
    return "" if any(cell.group < UNSOLVED for cell in complete(found)) else "; no other complete cell solves it either"


def edge(found: SearchedTable, test: dict[str, Any]) -> str:
    """Tell which cells of a claim were searched to the end of a range, so that a longer one may change the answer."""
    cells = [cell for cell in complete(found) if cell.name in rows_of(test)]
    told = [f"{cell.name} ({', '.join(ends)})" for cell in cells if (ends := searched.ends_of(found, cell))]
    return f"; chosen at the end of what was searched: {', '.join(told)}" if told else ""


def network(table: Table, row: str) -> dict[str, Any]:
    """The settings of a row's model without those that a search chooses, which are no other network."""
    model = ComposedTable(table, FULL).settings(row).model
    chosen = table.files.searched(table.chosen(row)["model"])
    return {name: one for name, one in model.items() if name not in chosen}


def changed(found: SearchedTable) -> str:
    """Tell which complete cells held a case after 2,000 steps and do not solve it, or did not learn it and solve it.

    A cell that is another network today, of another width or with another gate, is left out.
    """
    if found.table.name not in BEFORE:
        return ""
    name, case = BEFORE[found.table.name]
    first = fair_table(SHIPPED.table(name), RESULTS)
    before = {entry.model: entry for entry in first.at(case) if entry.whole}
    lost, won = [], []
    for cell in (cell for cell in complete(found) if cell.name in before):
        row = next(iter(before[cell.name].rows.values()))
        if network(first.table, row) != network(found.table, f"{cell.name}_{TRIAL}0"):
            continue
        held = first.horizon(before[cell.name]) is not None
        if held and cell.group >= UNSOLVED:
            lost.append(cell.name)
        if cell.group < UNSOLVED and not held:
            count, of = cell.solved
            won.append(f"{cell.name} ({count} of {of} seeds)")
    told = [f"held after 2,000 steps, and solved by no seed here: {', '.join(lost)}"] if lost else []
    return "; ".join([*told, f"not held after 2,000 steps, and solved here: {', '.join(won)}"] if won else told)


def run() -> str:
    """A line for each case of which a cell is complete, with those that solve it or come nearest; others in one."""
    lines = []
    for found in (one for one in cases() if complete(one)):
        done = complete(found)
        lines.append(f"- {budget(found)}: {len(done)} of {len(found.cells)} cells are complete. {outcome(found)}")
    return "\n".join([*lines, *bare(cases())]) + "\n"


def bare(of: list[SearchedTable]) -> list[str]:
    """A line that names the tables of which no cell is complete, where there are any."""
    names = [f"{found.table.title} (`{found.table.name}`)" for found in of if not complete(found)]
    return [f"- No cell is complete: {'; '.join(names)}."] if names else []


def outcome(found: SearchedTable) -> str:
    """Which of the complete cells solve a case, how near the best of the others come, and which did not learn it."""
    cells = complete(found)
    names = {place: [cell.name for cell in cells if cell.group == place] for place in range(len(GROUPS))}
    known = [(one.reached[1], one.name) for one in cells if one.group == UNSOLVED and one.reached]
    nearest = [f"{name} {score:.2f}" for score, name in sorted(known, reverse=True)[:NEAREST] if isfinite(score)]
    told = [f"{GROUPS[place].capitalize()}: {', '.join(names[place])}." for place in range(UNSOLVED) if names[place]]
    told = [*(told or ["None solves it."]), *ended(found)]
    if nearest:
        told.append(f"The greatest median scores of cells that no seed solves: {', '.join(nearest)}.")
    if names[UNLEARNT]:
        told.append(f"Did not learn: {', '.join(names[UNLEARNT])}.")
    return " ".join(told)


def ended(found: SearchedTable) -> list[str]:
    """Tell how many runs that do not solve the case went on to the last step, as they were still improving."""
    runs = [line for cell in complete(found) for line in cell.lines if solved(line) is None]
    capped = sum((line.metric("steps") or 0) >= found.cap for line in runs)
    told = f"{capped} of {len(runs)} reported runs that do not solve it ended at the last step, before their loss was"
    return [f"{told} flat: more steps may change who solves it."] if capped else []


def far(cell: SearchedCell) -> str:
    """The median score of all reported seeds at the middle one and the last of the tested lengths."""
    scores, lengths = cell.reached_by_length, cell.lengths
    shown = dict.fromkeys((middle(lengths), lengths[-1])) if scores else {}
    told = {length: round(scores[length], 2) + 0 for length in shown if isfinite(scores[length])}
    return ", ".join(f"{score:.2f} at {length:,}" for length, score in told.items())


def grid() -> str:
    """The complete cells by case: who solves it, how far, how near the others come, and what it costs."""
    parts, places = [], [searched.HEADERS.index(name) for name in SHOWN]
    for found in (one for one in cases() if complete(one)):
        rows = []
        for cell, row in zip(complete(found), searched.cells(found).rows, strict=True):
            shown = dict(zip(SHOWN, (row[place] for place in places), strict=True))
            if cell.group == UNLEARNT:
                shown["solved"] = GROUPS[UNLEARNT]
            rows.append([*shown.values(), far(cell)])
        if found.order_blind is not None:
            blind = {"cell": "order-blind predictor", "score": f"{found.order_blind:.2f}"}
            rows.append([blind.get(name, "") for name in (*SHOWN, FAR)])
        parts += [f"### {found.table.title}\n", markdown_table(Grid([*SHOWN, FAR], rows))]
    return "\n".join(parts) or "No cell is complete.\n"


def worth() -> str:
    """What orthogonality is worth: the effects of each design whose cells are complete."""
    designs = [one for one in tables().values() if one.table.factors]
    parts = [f"{line}\n" for line in bare(designs)]
    for found in (one for one in designs if complete(one)):
        effects = searched.worth(found)
        parts.append(f"{budget(found)}: {len(complete(found))} of {len(found.cells)} cells are complete.\n")
        if effects.rows:
            parts += [markdown_table(effects), *(f"{told}\n" for told in searched.cut_horizons(found))]
    return "\n".join(parts)


def claims() -> str:
    """The claims that are decided or open, with what came of them."""
    rows = [
        [one.word, one.stated.claim, found.table.title, one.detail, searched.when(one.stated, found)]
        for found in tables().values()
        for one in outcomes(found)
        if one.word != UNRUN
    ]
    grid = Grid(["status", "claim", "case", "figures", "written"], rows)
    return TESTED + "\n" + markdown_table(grid) if rows else "None is decided.\n"


def robust() -> str:
    """For each table that looks at another again: how many cells change their group."""
    again = [one for one in tables().values() if one.table.like is not None and not one.table.factors]
    lines = [
        f"- {budget(found)}: "
        + (" ".join(searched.changed_groups(found)) or f"no cell is complete here and in {found.table.like}.")
        for found in again
        if complete(found)
    ]
    return "\n".join([*lines, *bare(again)]) + "\n"


def page(pictures: Collection[Path]) -> str:
    """docs/results/answer.md, with these of its pictures."""
    solved = f"![Training steps until each reported seed solved the case]({SOLVED.name})\n"
    lengths = f"![Median score by length, where 0 is the trivial predictor and 1 is perfect]({LENGTHS.name})\n"
    unsolved = "No cell is complete, so that there is no curve.\n"
    parts = [HEAD, textwrap.fill(contradictions(), 120) + "\n", "## What is run\n", run()]
    parts += ["## Who solves it, and in how many steps\n", LEGEND, *[solved] * (SOLVED in pictures), grid()]
    parts += ["## How far is it held\n", lengths if LENGTHS in pictures else unsolved]
    parts += ["## Is it the orthogonality?\n", worth(), "## Claims\n", claims()]
    return "\n".join([*parts, "## Is it robust?\n", robust()])


def main(arguments: list[str]) -> int:
    """Returns 1 where a file is not what it should be and is not to be written."""
    drawn = zip((SOLVED, LENGTHS), searched_figures.panels(cases()), strict=True)
    pictures = {path: None if figure is None else drawing.svg(figure) for path, figure in drawn}
    there = [path for path, text in pictures.items() if text is not None]
    return renew({PAGE: page(there), **pictures}, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
