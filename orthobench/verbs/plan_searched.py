"""The part of `orthobench plan` about searched tables: what is missing of every cell, and for how long."""

from collections.abc import Callable, Iterable
from statistics import median
from typing import TYPE_CHECKING

from orthobench.common.terminal import duration_text
from orthobench.errors import OrthobenchError, Stopped

if TYPE_CHECKING:
    from orthobench.config.settings import Settings
    from orthobench.study.costs.run_costs import Cost
    from orthobench.study.reproduce.plan import Plan, PlannedRun
    from orthobench.study.verdicts.searched import SearchedTable


def plan_searched(
    table: "SearchedTable", named: Iterable[str] | None, found: "Plan", cost: "Callable[[Settings], Cost]"
) -> tuple[list[str], float, float]:
    """Lines for the cells of a searched table, the seconds that its next runs take, and all missing ones at the most.

    A run takes what the recorded runs of its cell took in the median, or what its kept cost says.

    Args:
        table: the table by its records.
        named: the cells that are meant; None for all.
        found: the runs that are left.
        cost: what a run costs.
    """
    due: dict[str, list[PlannedRun]] = {}
    for run in found.runs:
        due.setdefault(table.table.variants[run.job.row].base, []).append(run)
    stale = sum(run.stale is not None for run in found.runs)
    told = [
        f"{table.table.name}: {found.recorded} of at most {found.recorded + len(found.runs) + found.later} runs "
        f"recorded, {len(found.runs)} to do next{f', {stale} of which are stale' if stale else ''}, "
        f"{found.later} later at the most"
    ]
    next_s = most_s = 0.0
    for cell in table.cells:
        if named is not None and cell.name not in named:
            continue
        runs, later = due.get(cell.name, []), table.later([cell.name])
        if not runs:
            told.append(f"  {cell.name}: complete, {cell.recorded} runs")
            continue
        walls = [wall for lines in (*cell.trials.values(), cell.lines) for line in lines
                 if (wall := line.metric("time/wall_s")) is not None]  # fmt: skip
        try:
            each_s = median(walls) if walls else cost(runs[0].settings).total_s
        except Stopped:
            raise
        except OrthobenchError as error:
            told.append(f"  {cell.name}: {error}")
            continue
        next_s += each_s * len(runs)
        most_s += each_s * (len(runs) + later)
        seeds = ", ".join(map(str, dict.fromkeys(run.job.seed for run in runs)))
        told.append(
            f"  {cell.name}: {cell.recorded} recorded, {len(runs)} next (seeds {seeds}), {later} later at the most, "
            f"{duration_text(each_s)} each"
        )
    told += [f"  {row.split()[1]}: cannot be built, {reason}" for row, reason in found.refused.items()]
    return told, next_s, most_s
