"""Of tables: the runs that are recorded, missing or impossible, and what the missing ones would take."""

from pathlib import Path

from orthobench.errors import OrthobenchError
from orthobench.terminal import duration_text, say
from orthobench.verbs.reproduce import Selection


def plan_tables(selection: Selection, preset: str, folders: tuple[Path, ...]) -> int:
    """Print one line per cell with its seeds, size and cost on this machine, and the sums.

    Raises:
        ConfigError: no such table, preset or cell.
    """
    from orthobench.analysis import records
    from orthobench.config import table as experiment
    from orthobench.launch.plan import plan, select
    from orthobench.run.cost import Cost, measure, same_cost

    extra = selection.extra
    total_s, costs = 0.0, dict[str, Cost]()
    for name in select(selection.names, folders):
        table = experiment.load(name, folders)
        cells = list(table.cells if selection.cells is None else selection.cells)
        found, results = plan([name], preset, selection.seeds, cells, extra, folders)
        seeds = list(table.planned(preset) if selection.seeds is None else selection.seeds)
        failed = sum(line.diverged for line in records.read(results, name) if line.preset == preset)
        say(
            f"{name}: {found.recorded} of {len(cells) * len(seeds)} runs recorded"
            f"{f', {failed} of them diverged' if failed else ''}, {len(found.runs)} to do"
        )
        for cell in dict.fromkeys(run.job.cell for run in found.runs):
            runs = [run for run in found.runs if run.job.cell == cell]
            words, same = [*runs[0].job.overrides, *extra], same_cost(runs[0].settings.identity)
            try:
                cost = costs[same] = costs[same] if same in costs else measure(words, folders)
            except OrthobenchError as error:
                say(f"  {cell}: {error}")
                continue
            total_s += cost.total_s * len(runs)
            say(f"  {cell}: {len(runs)} seed{'s' * (len(runs) > 1)}, {cost} each")
        for cell, reason in found.refused.items():
            say(f"  {cell.split()[1]}: cannot be built, {reason}")
    say(f"{duration_text(total_s)} to go on this machine, one run at a time")
    return 0
