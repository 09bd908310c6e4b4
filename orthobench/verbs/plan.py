"""`orthobench plan OVERRIDES|TABLE...`: what a run, a sweep or tables would cost, from a few steps of each."""

from orthobench.terminal import duration_text, say


def main(arguments: list[str]) -> int:
    """Print one line per run with its state, length and cost, and the sum of what is missing.

    Of a table (`sgornn/table2`, a paper, or all; `--preset short`) every cell is measured, with its first seed.

    Raises:
        ConfigError: a run of the sweep is wrong.
    """
    if any("=" not in word and not word.startswith("-") for word in arguments):
        from orthobench.verbs.plan_tables import main as plan_tables

        return plan_tables(arguments)
    from orthobench.__main__ import split
    from orthobench.app import Experiment, experiment
    from orthobench.config import parse
    from orthobench.recording.files import read_json
    from orthobench.sweep import jobs
    from orthobench.verbs.plan_cost import Cost, measure, same_cost

    _, overrides, folders = split([word for word in arguments if word not in ("-m", "--multirun")])
    costs: dict[str, Cost] = {}
    states: dict[str, int] = {}
    missing_s = 0.0
    for job in jobs(parse(overrides, folders)):
        exp: Experiment = experiment(job, folders)
        record = read_json(exp.settings.folder / "record.json")
        state = record["status"] if record else "missing"
        states[state] = states.get(state, 0) + 1
        key = same_cost(exp.settings.identity)
        if key not in costs:
            costs[key] = measure(job, folders)
        if state not in ("done", "diverged"):
            missing_s += costs[key].total_s
        say(f"{exp.run_id}  {state:8}  {costs[key]}")
    told = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    say(f"{told}; {duration_text(missing_s)} to go on this machine, one run at a time")
    return 0
