"""`orthobench plan KEY=VALUE...|TABLE...|PAPER...|all`: what runs would cost, from costs that are kept or measured."""

from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from orthobench.common.terminal import complain, duration_text, say, waiting
from orthobench.common.version import __version__
from orthobench.errors import OrthobenchError, Stopped
from orthobench.study.catalogue import Catalogue
from orthobench.verbs import plan_folders
from orthobench.verbs.arguments import Parser
from orthobench.verbs.asked import Asked, add_options
from orthobench.verbs.plan_searched import plan_searched

if TYPE_CHECKING:
    from orthobench.config.settings import Settings
    from orthobench.study.costs.known_costs import KnownCosts
    from orthobench.study.costs.run_costs import Cost
    from orthobench.study.reproduce.due import SelectedTable
    from orthobench.study.reproduce.plan import Plan, PlannedRun
    from orthobench.study.reproduce.selection import Selection

NAMED = 2  # rows that a line names
PARTS = (lambda one: one.hours, lambda one: len(one.runs), lambda one: one.results)


def main(arguments: list[str]) -> int:
    """Print a summary, then one line for all runs that cost the same, with their state, length and cost.

    A run is `stale` where `reproduce` would not take what is finished or recorded of it; it counts as missing. A cost
    is `kept` where it was measured before, `measured` now, or `scaled` from another length or machine.

    Raises:
        ConfigError: a run of the sweep, a table or an option is wrong.
    """
    parser = Parser(__doc__)
    add_options(parser)
    parser.add_argument("--record", action="store_true", help="keep costs in results/bench/costs.csv, for `tables`")
    folders = "write the folder of each run that is left, which `python -m orthobench.run FOLDER` does"
    parser.add_argument("--folders", action="store_true", help=folders)
    parser.add_argument("--multirun", "-m", action="store_true", help="allowed, and needed for a table's rows alone")
    parser.add_folders()
    given = parser.read(arguments)
    catalogue = given.catalogue
    asked = Asked.of(given.overrides, given)
    several = given.multirun or asked.rows is None or len(asked.rows) > 1
    of_table = bool(given.names or (asked.names and several))
    for option in ("preset", "seeds", "record", "models") if not of_table and not given.cheapest else ():
        if getattr(given, option):
            parser.error(f"--{option} {getattr(given, option)} is of a table, and none is named")
    if given.folders:
        if given.cheapest or given.record:
            parser.error("--folders costs no run, and so goes with neither --cheapest nor --record")
        if of_table:
            return plan_folders.of_tables(asked.selection(catalogue, given.preset))
        return plan_folders.of_sweep(given.overrides, catalogue)
    say(f"orthobench {__version__} plans {' '.join((*asked.names, *given.overrides)) or 'one run'}")
    if given.cheapest:
        return _plan_cheapest(asked.selection(catalogue, given.preset), given.cheapest)
    if of_table:
        return _plan_tables(asked.selection(catalogue, given.preset), given.record)
    return _plan_runs(given.overrides, catalogue)


def _plan_runs(overrides: list[str], catalogue: Catalogue) -> int:
    from orthobench.recording.files import read_json
    from orthobench.study.costs.known_costs import KnownCosts
    from orthobench.study.reproduce.record_line import why_stale
    from orthobench.study.sweep import jobs

    asked = [catalogue.settings(job) for job in jobs(catalogue.parse(overrides))]
    from orthobench.models.build import fit_to_budget  # which is slow, and what is wrong is told before it

    checked = [fit_to_budget(one) for one in asked]
    _warn()
    costs = KnownCosts(Path(checked[0].run["results_root"]), Path(checked[0].run["runs_root"]))
    groups, states, missing_s = dict[str, list[str]](), dict[str, int](), 0.0
    for one in checked:
        record, why = read_json(one.folder / "record.json"), why_stale(one)
        state = "stale" if why else (record or {}).get("status", "missing")
        states[state] = states.get(state, 0) + 1
        cost = _cost(costs, one)
        missing_s += 0.0 if state in ("done", "diverged") else cost.total_s
        groups.setdefault(str(cost), []).append(f"{one.run_id}  {state:8}{f'  {why}' if why else ''}".rstrip())
    told = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    say(f"{told}; {duration_text(missing_s)} to go on this machine, one run at a time ({costs.words})")
    for cost, lines in groups.items():
        if len(lines) > 1:
            say(f"{len(lines)} runs of {cost} each:")
        for line in lines:
            say(f"  {line}" if len(lines) > 1 else f"{line}  {cost}")
    return 0


def _cost(costs: "KnownCosts | None", settings: "Settings") -> "Cost":
    """Cost of a run.

    Raises:
        Stopped: a signal asked for it.
    """
    from orthobench.common import signals

    assert costs is not None
    with signals.watched(program=True), waiting(f"a step of {settings.run_id}"):
        found = costs.of(settings)
        signals.check()
    return found


def _warn() -> None:
    from orthobench.study.costs.measuring import busy

    sentence = busy()
    if sentence:
        complain(f"orthobench: {sentence}")


def _plan_tables(asked: "Selection", record: bool) -> int:
    """Print the sum, and then of every table a line for all rows that cost the same.

    Raises:
        ConfigError: no such table, preset or row.
    """
    from orthobench.study.reproduce.due import selected_tables
    from orthobench.study.reproduce.plan import plan_table

    _warn()
    costs, told, next_s, most_s, counts = None, list[str](), 0.0, 0.0, Counter[str]()
    for one in selected_tables(asked):
        found = plan_table(one)
        costs = costs or found.known_costs(record)
        if found.searched is not None:
            lines, seconds, longest = plan_searched(found.searched, one.rows, found, partial(_cost, costs))
        else:
            lines, seconds = _rows(found, costs)
            lines = [*_heading(one, found), *lines]
            longest = seconds * (1 + found.later / max(len(found.runs), 1))  # a chosen rate costs what those tried do
        if one.of_like:
            like = one.composed.table.like
            lines.insert(1, f"  {len(one.of_like)} of its runs are recorded for {like}: `reproduce` takes them over")
        told += lines
        next_s, most_s = next_s + seconds, most_s + longest
        counts.update(recorded=found.recorded, to_do=len(found.runs), later=found.later)
    sources = f" ({costs.words})" if costs is not None and costs.words else ""
    to_do, later = counts["to_do"], counts["later"]
    runs = f"{to_do} to do; {duration_text(next_s)} to go"
    if later:
        runs = f"{to_do} to do now ({duration_text(next_s)}), at most {to_do + later} ({duration_text(most_s)})"
    say(f"{counts['recorded']} runs recorded, {runs} on this machine, one run at a time{sources}")
    for line in told:
        say(line)
    return 0


def _heading(one: "SelectedTable", found: "Plan") -> list[str]:
    """State of a table, and its records that are of no use."""
    from orthobench.study.records import records

    table = one.composed.table
    stale = {(run.job.row, run.job.seed): run.stale for run in found.runs if run.stale}
    lines = (line for line in records.read(one.results, table.name) if line.preset == one.composed.preset)
    failed = sum(line.diverged for line in lines if (line.row, line.seed) not in stale)
    return [
        f"{table.name}: {found.recorded} of {found.recorded + len(found.runs) + found.later} runs recorded"
        f"{f', {failed} of them diverged' if failed else ''}, {len(found.runs)} to do"
        f"{f', {len(stale)} of which are stale' if stale else ''}"
        f"{f', and then {found.later} at the rates that these will choose' if found.later else ''}",
        *(f"  {row} seed {seed}: stale: {why}" for (row, seed), why in stale.items()),
    ]  # fmt: skip


def _rows(found: "Plan", costs: "KnownCosts | None") -> tuple[list[str], float]:
    """A line for all rows of a table that cost the same, one for each that cannot be built, and the sum in seconds."""
    by_row: dict[str, list[PlannedRun]] = {}
    for run in found.runs:
        by_row.setdefault(run.job.row, []).append(run)
    groups, lines, total_s = dict[tuple[str, int], list[str]](), list[str](), 0.0
    for row, runs in by_row.items():
        try:
            cost = _cost(costs, runs[0].settings)
        except Stopped:  # asked by a signal, which is no fault of this row
            raise
        except OrthobenchError as error:
            lines.append(f"  {row}: {error}")
            continue
        total_s += cost.total_s * len(runs)
        groups.setdefault((str(cost), len(runs)), []).append(row)
    for (cost, seeds), rows in groups.items():
        more = f" and {len(rows) - NAMED} more" if len(rows) > NAMED + 1 else ""
        names = ", ".join(rows[:NAMED] if more else rows)
        lines.append(f"  {names}{more}: {seeds} seed{'s' * (seeds > 1)}, {cost} each")
    return lines + [f"  {row.split()[1]}: cannot be built, {reason}" for row, reason in found.refused.items()], total_s


def _plan_cheapest(asked: "Selection", time: str) -> int:
    """Print the rows of published tables that fit into a time, those first that settle most results an hour.

    Raises:
        ConfigError: no such table, preset or row, or no such time.
    """
    from orthobench.config.words import seconds
    from orthobench.study.reproduce.cheapest import cheapest_rows

    _warn()
    found, costs = cheapest_rows(asked, seconds(time, "--cheapest"))
    hours, runs, results = (sum(part(one) for one in found) for part in PARTS)
    sources = f" ({costs.words})" if costs is not None else ""
    say(f"{len(found)} rows, {runs:,} runs, {hours:.1f} of {time}, which settle {results} numbers and claims{sources}")
    spent = 0.0
    for one in found:
        spent += one.hours
        count = f"{len(one.runs)} run{'s' * (len(one.runs) != 1)}"
        say(f"  {one.table} {one.row}: {count}, {one.hours:.2f} h, {spent:.1f} h so far")
    if found:
        say("`orthobench reproduce` with the same words runs them")
    return 0
