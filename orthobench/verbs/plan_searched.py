"""The part of `orthobench plan` about searched tables: what is missing of every cell, and for how long."""

from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from orthobench.errors import OrthobenchError, Stopped
from orthobench.terminal import duration_text, say
from orthobench.verbs.reproduce import Selection

if TYPE_CHECKING:
    from orthobench.launch.plan import PlannedRun


def plan_searched(name: str, selection: Selection, preset: str, folders: tuple[Path, ...]) -> float:
    """Print one line per cell of a searched table; returns the seconds that its missing runs take at the most.

    A run takes what the recorded runs of its cell took in the median, or what a few steps of it say.

    Raises:
        ConfigError: no such preset or cell.
    """
    from orthobench.analysis.searched import joined, searched_table
    from orthobench.config.table import load
    from orthobench.launch.plan import plan

    named = selection.models or selection.rows
    found, results = plan([name], preset, selection.seeds, selection.rows, selection.extra, folders, selection.models)
    table = searched_table(joined(load(name, folders), named), results, preset)
    due: dict[str, list[PlannedRun]] = {}
    for run in found.runs:
        due.setdefault(table.table.variants[run.job.row].base, []).append(run)
    stale = sum(run.stale is not None for run in found.runs)
    say(
        f"{name}: {found.recorded} of at most {found.recorded + len(found.runs) + found.later} runs recorded, "
        f"{len(found.runs)} to do next{f', {stale} of which are stale' if stale else ''}, "
        f"{found.later} later at the most"
    )
    total_s = 0.0
    for cell in table.cells:
        if named is not None and cell.name not in named:
            continue
        runs, later = due.get(cell.name, []), table.later([cell.name])
        if not runs:
            say(f"  {cell.name}: complete, {cell.recorded} runs")
            continue
        walls = [wall for lines in (*cell.trials.values(), cell.lines) for line in lines
                 if (wall := line.metric("time/wall_s")) is not None]  # fmt: skip
        try:
            each_s = median(walls) if walls else _measured_s(runs[0], selection.extra, folders)
        except Stopped:
            raise
        except OrthobenchError as error:
            say(f"  {cell.name}: {error}")
            continue
        total_s += each_s * (len(runs) + later)
        seeds = ", ".join(map(str, dict.fromkeys(run.job.seed for run in runs)))
        say(
            f"  {cell.name}: {cell.recorded} recorded, {len(runs)} next (seeds {seeds}), {later} later at the most, "
            f"{duration_text(each_s)} each"
        )
    for row, reason in found.refused.items():
        say(f"  {row.split()[1]}: cannot be built, {reason}")
    return total_s


def _measured_s(run: "PlannedRun", extra: tuple[str, ...], folders: tuple[Path, ...]) -> float:
    from orthobench.verbs.plan import measured

    return measured(run.job.row, [*run.job.overrides, *extra], folders).total_s
