"""The claims of a searched table: which of them hold.

`solves` and `horizon` count; the other kinds are those of published claims, tested over the reported seeds on the
table's score (claim_rule.py). A cell that did not learn takes part in these with the trivial predictor's score.

    {solves: [gru], seeds: 9}              nine reported seeds or more solve the case, of each cell; `at_most: 0` is the
                                           opposite
    {horizon: [gru], at_least: 640}        the horizon of each cell that solves the case at all; `below: 640` is the
                                           opposite. The length is one that is tested. Where no cell solves the case,
                                           nothing is decided
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from orthobench.common.schema import did_you_mean
from orthobench.errors import ConfigError
from orthobench.study.records.records import Line
from orthobench.study.statistics.status import NOT_REPRODUCED, REPRODUCED
from orthobench.study.tables import claim_rule, metrics
from orthobench.study.tables.claim import StatedClaim
from orthobench.study.tables.published import Published
from orthobench.study.tables.search import TRIAL
from orthobench.study.tables.table import Table
from orthobench.study.verdicts import claims
from orthobench.study.verdicts.searched import SearchedTable, cells_of
from orthobench.study.verdicts.searched_cell import SearchedCell

HELD, FAILED, OPEN, UNRUN = "held", "not held", "undecided", "not run"
IN_TRAINING = "held in training"  # of a comparison that the medians contradict at a tested length
COUNTED = {"solves": ("seeds", "at_most"), "horizon": ("at_least", "below")}
WORDS = {REPRODUCED: HELD, NOT_REPRODUCED: FAILED}


@dataclass(frozen=True)
class ClaimOutcome:
    """A claim with what came of it: one of the words above, and the figures behind it."""

    stated: StatedClaim
    word: str
    detail: str = ""


def runs_before(stated: StatedClaim, found: SearchedTable) -> tuple[int, int] | None:
    """Count the runs of the cells of a claim that were finished when it was written, and those that there are.

    None where the claim does not say when. A run whose record does not say when it was finished counts.
    """
    time, rows = stated.time, tuple(f"{name}_{TRIAL}" for name in rows_of(stated.test))
    ends = [line.values.get("finished") for line in found.lines if line.row.startswith(rows)]
    before = None if time is None else sum(end is None or datetime.fromisoformat(end) < time for end in ends)
    return None if before is None else (before, len(ends))


def check_claims(table: Table) -> None:
    """Look at the claims of a table.

    Raises:
        ConfigError: a test is not known, lacks an operand, or names a cell that the table does not have.
    """
    known = cells_of(table)
    for number, stated in enumerate(table.claims):
        problem = _problem(stated.test)
        if stated.case or (stated.metric and COUNTED.keys() & stated.test.keys()):
            problem = "case has no meaning here, and metric none for solves and horizon"
        wrong = next((name for name in rows_of(stated.test) if name not in known), None)
        if problem is None and wrong is not None:
            problem = f"{wrong} is no cell of the table: {did_you_mean(wrong, known)}"
        if problem is not None:
            raise ConfigError(f"{table.name}: claims[{number}]: {problem}; correct that claim.")


def _problem(test: dict[str, Any]) -> str | None:
    verb = next((name for name in COUNTED if name in test), None)
    if verb is None:
        return claim_rule.problem(test)
    others = [name for name in test if name != verb]
    if len(others) != 1 or others[0] not in COUNTED[verb] or not isinstance(test[others[0]], int):
        return f"test {verb} needs one of {', '.join(COUNTED[verb])}, a whole number"
    return None if isinstance(test[verb], list) and test[verb] else f"test {verb} needs a list of cells"


def rows_of(test: dict[str, Any]) -> list[str]:
    """The cells that a test names."""
    verb = next((name for name in COUNTED if name in test), None)
    return list(test[verb]) if verb else claim_rule.claimed_rows(test)


def refuse_untested(test: dict[str, Any], lengths: Sequence[int], place: str) -> None:
    """Refuse a claim on a horizon at a length that no run is tested at: beyond the longest, all would be below it.

    Raises:
        ConfigError: the length is not among `lengths`.
    """
    limits = [value for name, value in test.items() if name != "horizon"] if "horizon" in test else []
    if not set(limits) <= set(lengths):
        raise ConfigError(
            f"{place}: length {limits[0]} is not tested: choose one of task.eval_lengths={list(lengths)}."
        )


def outcomes(found: SearchedTable) -> list[ClaimOutcome]:
    """Return what came of every claim of a table, in its order; the tested ones are one family for Holm's correction.

    Raises:
        ConfigError: a claim is wrong.
    """
    check_claims(found.table)
    for number, stated in enumerate(found.table.claims if found.lines else ()):
        refuse_untested(stated.test, found.lengths, f"{found.table.name}: claims[{number}]")
    cells = {cell.name: cell for cell in found.cells}
    tested = [stated for stated in found.table.claims if not COUNTED.keys() & stated.test.keys()]
    printed = [_printed(found, stated) for stated in tested]
    rows = {name: _lines(cell) for name, cell in cells.items()}
    verdicts = iter(claims.judge(printed, rows, len(found.seeds))) if printed else iter(())
    result = []
    for stated in found.table.claims:
        if stated in tested:
            verdict = next(verdicts)
            undone = [name for name in rows_of(stated.test) if not cells[name].complete]
            if undone:
                result.append(ClaimOutcome(stated, UNRUN, f"not complete: {', '.join(undone)}"))
                continue
            against, word = turned(stated.test, cells), WORDS.get(verdict.word, OPEN)
            word = IN_TRAINING if word == HELD and against else word
            result.append(ClaimOutcome(stated, word, "; ".join([verdict.detail or verdict.mark, *against])))
        else:
            result.append(_counted(stated, [cells[name] for name in rows_of(stated.test)]))
    return result


def turned(test: dict[str, Any], cells: dict[str, SearchedCell]) -> list[str]:
    """Tell from which tested length on the medians of all seeds contradict a comparison, which is made in training."""
    if claim_rule.verb_of(test) not in ("better", "not_worse"):
        return []
    margin, told = test.get("margin", 0.0), []
    for first, other in claim_rule.pairs(test):
        here, there = cells[first].reached_by_length, cells[other].reached_by_length
        lengths = sorted(here.keys() & there.keys())
        least = next((one for one in lengths if here[one] < there[one] - margin), None)
        if least is not None:
            later = [here[one] < there[one] - margin for one in lengths if one > least]
            more = f" and {sum(later)} greater length{'s' * (sum(later) > 1)}" if any(later) else ""
            on = " and beyond" if later and all(later) else more
            told.append(f"at {least:,}{on} {other} has the higher median, {there[least]:.2f} against {here[least]:.2f}")
    return told


def _counted(stated: StatedClaim, cells: list[SearchedCell]) -> ClaimOutcome:
    """Return what came of a claim that counts."""
    undone = [cell.name for cell in cells if not cell.complete]
    if undone:
        return ClaimOutcome(stated, UNRUN, f"not complete: {', '.join(undone)}")
    test = stated.test
    if "solves" in test:
        counts = [cell.solved[0] for cell in cells]
        held = [count >= test["seeds"] if "seeds" in test else count <= test["at_most"] for count in counts]
        return ClaimOutcome(stated, HELD if all(held) else FAILED, ", ".join(map(_share, cells)))
    able = [cell for cell in cells if cell.solved[0]]
    if not able:
        return ClaimOutcome(stated, OPEN, "no seed of these cells solves the case")
    reached = {cell.name: cell.horizon or 0 for cell in able}
    held = [one < test["below"] if "below" in test else one >= test["at_least"] for one in reached.values()]
    told = ", ".join(f"{name} {one or 'none'}" for name, one in reached.items())
    return ClaimOutcome(stated, HELD if all(held) else FAILED, told)


def _share(cell: SearchedCell) -> str:
    """Such as `kda 2 of 10 [0.03, 0.56]`, with the interval of the share of seeds, which the count does not tell."""
    count, of = cell.solved
    ends = "" if cell.interval is None else " [{:.2f}, {:.2f}]".format(*cell.interval)
    return f"{cell.name} {count} of {of or len(cell.seeds)}{ends}"


def _printed(found: SearchedTable, stated: StatedClaim) -> Published:
    """The claim as one of a paper's, for the tests that both have."""
    table = found.table
    first = [next(iter(table.rows))]
    name = stated.metric or str(table.score)
    measured = metrics.metric_of(name, table, first)
    column = claim_rule.column(name, stated.test, measured.direction)
    return Published(
        paper=table.paper,
        table=table.name,
        label="",
        column="",
        metric=column,
        section="",
        seeds=len(found.seeds),
        select="best_val",
        kind="claim",
        rows=tuple(rows_of(stated.test)),
        claim=stated.claim,
        test=stated.test,
        measured=metrics.metric_of(column, table, first),
    )


def _lines(cell: SearchedCell) -> list[Line]:
    """The reported runs of a cell; of one that did not learn, as many with the trivial predictor's scores."""
    if not cell.complete:
        return []
    if cell.state.chosen is not None:
        return list(cell.lines)
    line = next(line for lines in cell.trials.values() for line in lines)
    trivial = {name.partition("/")[2]: value for name, value in line.values.items() if name.startswith("baseline/")}
    values = {f"best_val:test/{name}": value for name, value in trivial.items()}
    return [Line(values | {"cell": cell.name, "seed": seed, "status": "done", "run_id": ""}) for seed in cell.seeds]
