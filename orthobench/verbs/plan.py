"""`orthobench plan KEY=VALUE...|TABLE...|PAPER...|all`: what runs would cost, from a few steps of each."""

from pathlib import Path

from orthobench.config.table import FULL
from orthobench.terminal import duration_text, say
from orthobench.verbs.arguments import Parser
from orthobench.verbs.reproduce import WORDS, Selection


def main(arguments: list[str]) -> int:
    """Print one line per run with its state, length and cost, and the sum of what is missing.

    Of a table (`sgornn/table2`, a paper, all, or `-m experiment=sgornn/table2`) every cell is measured, with one seed.

    Raises:
        ConfigError: a run of the sweep, a table or an option is wrong.
    """
    parser = Parser(__doc__)
    parser.add_argument("--preset", help=WORDS["--preset"])
    parser.add_argument("--multirun", "-m", action="store_true", help="allowed, and needed for a table's cells alone")
    parser.add_folders()
    given = parser.read(arguments)
    folders = tuple(given.config_dir)
    selection = Selection.of(given.overrides)
    several = given.multirun or selection.cells is None or len(selection.cells) > 1
    if given.names or (selection.names and several):
        from orthobench.verbs.plan_tables import plan_tables

        return plan_tables(selection.with_names(given.names), given.preset or FULL, folders)
    if given.preset:
        parser.error(f"--preset {given.preset} is of a table, and none is named")
    return _plan_runs(given.overrides, folders)


def _plan_runs(overrides: list[str], folders: tuple[Path, ...]) -> int:
    from orthobench.config.compose import parse
    from orthobench.launch.sweep import jobs
    from orthobench.recording.files import read_json
    from orthobench.run.cost import Cost, measure, same_cost
    from orthobench.run.run import Run

    costs: dict[str, Cost] = {}
    states: dict[str, int] = {}
    missing_s = 0.0
    for job in jobs(parse(overrides, folders)):
        exp: Run = Run.of(job, folders)
        record = read_json(exp.settings.folder / "record.json")
        state = record["status"] if record else "missing"
        states[state] = states.get(state, 0) + 1
        same = same_cost(exp.settings.identity)
        if same not in costs:
            costs[same] = measure(job, folders)
        if state not in ("done", "diverged"):
            missing_s += costs[same].total_s
        say(f"{exp.run_id}  {state:8}  {costs[same]}")
    told = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    say(f"{told}; {duration_text(missing_s)} to go on this machine, one run at a time")
    return 0
