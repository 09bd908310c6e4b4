"""`orthobench plan KEY=VALUE...|TABLE...|PAPER...|all`: what runs would cost, from a few steps of each."""

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orthobench import lean_lightning
from orthobench.config.table import FULL
from orthobench.errors import OrthobenchError, Stopped
from orthobench.terminal import complain, duration_text, say, waiting
from orthobench.verbs.arguments import Parser
from orthobench.verbs.plan_searched import plan_searched
from orthobench.verbs.reproduce import WORDS, Selection, models_of, refuse_models, seeds_of

if TYPE_CHECKING:
    from orthobench.run.cost import Cost


def main(arguments: list[str]) -> int:
    """Print one line per run with its state, length and cost, and the sum of what is missing.

    A run is `stale` where `reproduce` would not take what is finished or recorded of it; it counts as missing.

    Of a table (`sgornn/table2`, a paper, all, or `-m experiment=sgornn/table2`) every row is measured, with one seed.

    Raises:
        ConfigError: a run of the sweep, a table or an option is wrong.
    """
    lean_lightning.deferred = True
    parser = Parser(__doc__)
    parser.add_argument("--seeds", help=WORDS["--seeds"])
    parser.add_argument("--models", metavar="A,B", help=WORDS["--models"])
    parser.add_argument("--preset", help=WORDS["--preset"])
    parser.add_argument("--multirun", "-m", action="store_true", help="allowed, and needed for a table's rows alone")
    parser.add_folders()
    given = parser.read(arguments)
    folders = tuple(given.config_dir)
    selection = Selection.of(given.overrides, given.names)
    if given.seeds is not None:
        selection = replace(selection, seeds=seeds_of(given.seeds))
    if given.models is not None:
        selection = replace(selection, models=models_of(given.models))
    several = given.multirun or selection.rows is None or len(selection.rows) > 1
    if given.names or (selection.names and several):
        return _plan_tables(selection, given.preset or FULL, folders)
    for option in ("preset", "seeds", "models"):
        if getattr(given, option):
            parser.error(f"--{option} {getattr(given, option)} is of a table, and none is named")
    return _plan_runs(given.overrides, folders)


def _plan_runs(overrides: list[str], folders: tuple[Path, ...]) -> int:
    from orthobench.config.compose import parse
    from orthobench.config.many import settings
    from orthobench.launch.collect import why_stale
    from orthobench.launch.sweep import jobs
    from orthobench.recording.files import read_json

    checked = [(job, settings(job, folders)) for job in jobs(parse(overrides, folders))]
    from orthobench.run.cost import Cost, busy, no_shorter_is_dearer, same_cost
    from orthobench.run.run import Run

    _warn(busy())
    runs = [(job, Run.fitted(one)) for job, one in checked]
    costs: dict[str, tuple[dict[str, Any], Cost]] = {}
    for job, exp in runs:
        same = same_cost(exp.settings.identity)
        if same not in costs:
            costs[same] = exp.settings.identity, measured(exp.run_id, job, folders)
    nearest = dict(zip(costs, no_shorter_is_dearer(costs.values()), strict=True))
    states: dict[str, int] = {}
    missing_s = 0.0
    for _, exp in runs:
        record, why = read_json(exp.settings.folder / "record.json"), why_stale(exp.settings)
        state = "stale" if why else (record or {}).get("status", "missing")
        states[state] = states.get(state, 0) + 1
        cost = nearest[same_cost(exp.settings.identity)]
        if state not in ("done", "diverged"):
            missing_s += cost.total_s
        say(f"{exp.run_id}  {state:8}  {cost}{f'; {why}' if why else ''}")
    told = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    say(f"{told}; {duration_text(missing_s)} to go on this machine, one run at a time")
    return 0


def measured(name: str, words: list[str], folders: tuple[Path, ...]) -> "Cost":
    """See `run.cost.measure`.

    Raises:
        Stopped: a signal asked for it.
    """
    from orthobench.run.cost import measure

    try:
        with waiting(f"a few steps of {name}"):
            return measure(words, folders)
    except Stopped as stopped:
        asked = re.split(" at step| before", str(stopped))[0]  # what is said of a run is not true of a plan
        raise Stopped(f"{asked}; a plan keeps nothing, and the same command begins anew.") from stopped


def _warn(sentence: str | None) -> None:
    if sentence:
        complain(f"orthobench: {sentence}")


def _plan_tables(selection: Selection, preset: str, folders: tuple[Path, ...]) -> int:
    """Print one line per row with its seeds, size and cost on this machine, and the sums.

    Raises:
        ConfigError: no such table, preset or row.
    """
    from orthobench.analysis import records
    from orthobench.analysis.composed import ComposedTable
    from orthobench.analysis.published import select
    from orthobench.analysis.recorded import alike
    from orthobench.config.table import load
    from orthobench.launch.plan import plan
    from orthobench.run.cost import Cost, busy, same_cost

    _warn(busy())
    extra = selection.extra
    total_s, costs = 0.0, dict[str, Cost]()
    refuse_models(selection, folders)
    for name in select(selection.names, folders):
        before_s = total_s
        if load(name, folders).search is not None:
            total_s += plan_searched(name, selection, preset, folders)
            continue
        found, results = plan([name], preset, selection.seeds, selection.rows, extra, folders)
        stale = {(run.job.row, run.job.seed): run.stale for run in found.runs if run.stale}
        lines = (line for line in records.read(results, name) if line.preset == preset)
        failed = sum(line.diverged for line in lines if (line.row, line.seed) not in stale)
        say(
            f"{name}: {found.recorded} of {found.recorded + len(found.runs) + found.later} runs recorded"
            f"{f', {failed} of them diverged' if failed else ''}, {len(found.runs)} to do"
            f"{f', {len(stale)} of which are stale' if stale else ''}"
            f"{f', and then {found.later} at the rates that these will choose' if found.later else ''}"
        )
        table = load(name, folders)
        taken = len(alike(ComposedTable(table, preset), results))
        if taken:
            say(f"  {taken} of its runs are recorded for {table.like}, and `reproduce` takes them over without a run")
        for (row, seed), why in stale.items():
            say(f"  {row} seed {seed}: stale: {why}")
        for row in dict.fromkeys(run.job.row for run in found.runs):
            runs = [run for run in found.runs if run.job.row == row]
            words, same = [*runs[0].job.overrides, *extra], same_cost(runs[0].settings.identity)
            try:
                cost = costs[same] = costs[same] if same in costs else measured(row, words, folders)
            except Stopped:  # asked by a signal, which is no fault of this row
                raise
            except OrthobenchError as error:
                say(f"  {row}: {error}")
                continue
            total_s += cost.total_s * len(runs)
            say(f"  {row}: {len(runs)} seed{'s' * (len(runs) > 1)}, {cost} each")
        if found.runs:  # runs at the chosen rates cost what those of the tuning do
            total_s += found.later * (total_s - before_s) / len(found.runs)
        for row, reason in found.refused.items():
            say(f"  {row.split()[1]}: cannot be built, {reason}")
    say(f"{duration_text(total_s)} to go on this machine, one run at a time")
    return 0
