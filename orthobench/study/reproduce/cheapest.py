"""Choose rows of published tables that fit into a time and settle as many printed numbers and claims as
they can.

A number needs the runs of its row, and a claim those of all its rows; what is chosen next is what settles most results
for an hour, so that the rows of one claim are finished together.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from orthobench.errors import OrthobenchError, Stopped
from orthobench.study.costs.known_costs import KnownCosts
from orthobench.study.costs.step_costs import Place
from orthobench.study.reproduce.due import selected_tables
from orthobench.study.reproduce.plan import Plan, PlannedRun, plan_table
from orthobench.study.reproduce.selection import Selection
from orthobench.study.tables.published import load_table
from orthobench.study.tables.table import PUBLISHED, Table
from orthobench.study.verdicts.claims import can_be_decided, is_cost

TIME = "time/"  # what the metrics begin with that depend on the machine


@dataclass
class ChosenRow:
    """A row that is to be run.

    Attributes:
        runs: its runs that are not recorded.
        hours: what these cost.
        results: how many printed numbers and claims are settled with it, with those that were chosen before.
    """

    table: str
    row: str
    runs: list[PlannedRun]
    hours: float
    results: int = 0


def prices(found: Plan, costs: KnownCosts) -> dict[Place, ChosenRow]:
    """The rows of a plan, each with its price; one whose data is missing has none, and is left out."""
    rows: dict[Place, ChosenRow] = {}
    hours: dict[Place, float | None] = {}  # of a run of each trained row, whatever its seed
    for run in found.runs:
        place, trained = run.printed_row, (run.job.table, run.job.row)
        if trained not in hours:
            try:
                hours[trained] = costs.of(run.settings).total_s / 3600
            except Stopped:
                raise
            except OrthobenchError:
                hours[trained] = None
        each = hours[trained]
        if each is not None:
            own = rows.setdefault(place, ChosenRow(*place, [], 0.0))
            own.runs.append(run)
            own.hours += each
    return rows


def best(rows: dict[Place, ChosenRow], results: Iterable[frozenset[Place]], hours: float) -> list[ChosenRow]:
    """The rows that fit into so many hours, in the order in which they settle most results an hour.

    Args:
        rows: what is left to do, with its price.
        results: the rows that each printed number or claim still needs, all of which have a price.
        hours: the time.
    """
    left, found = list(results), list[ChosenRow]()
    while True:
        fitting = [(price, need) for need in set(left) if (price := sum(rows[place].hours for place in need)) <= hours]
        if not fitting:
            return found
        gain = {need: sum(other <= need for other in left) for _, need in fitting}
        price, need = max(fitting, key=lambda one: (gain[one[1]] / max(one[0], 1e-9), sorted(one[1])))
        ordered = sorted((rows[place] for place in need), key=lambda one: (one.hours, one.row))
        ordered[-1].results = gain[need]
        found += ordered
        hours -= price
        left = [rest for other in left if (rest := other - need)]


def cheapest_rows(asked: Selection, seconds: float) -> tuple[list[ChosenRow], KnownCosts | None]:
    """The rows of published tables that fit into a time; the costs are None where nothing is left to do.

    Raises:
        ConfigError: no such preset or row, or an extra word changes the numbers.
    """
    costs, rows, needs = None, dict[Place, ChosenRow](), list[frozenset[Place]]()
    for one in selected_tables(replace(asked, tables=[table for table in asked.tables if table.track == PUBLISHED])):
        found = plan_table(one)
        costs = costs or found.known_costs()
        if found.runs and costs is not None:
            rows |= prices(found, costs)
            needs += _needs(found.runs[0].table, {run.printed_row for run in found.runs}, _seeds(found.runs))
    return best(rows, (need for need in needs if need <= rows.keys()), seconds / 3600), costs


def _seeds(runs: list[PlannedRun]) -> int:
    """Number of seeds of a row once the runs are made."""
    return len({run.job.seed for run in runs}.union(runs[0].table.planned(runs[0].job.preset)))


def _needs(table: Table, due: set[Place], seeds: int) -> list[frozenset[Place]]:
    """The rows that each number and claim of a table lacks, of those that are due.

    A count of parameters lacks none. Left out are times, which need a machine that does nothing else, and claims that
    so many seeds cannot decide.
    """
    every = load_table(table)
    claims = [one for one in every if one.kind == "claim"]
    told = (one for one in every if not (one.counts or one.lost or is_cost(one) or one.metric.startswith(TIME)))
    able = (one for one in told if one.kind != "claim" or can_be_decided(one, claims, seeds))
    needs = (frozenset((table.name, row) for row in one.rows_of(table.rows)) & due for one in able)
    return [need for need in needs if need]
