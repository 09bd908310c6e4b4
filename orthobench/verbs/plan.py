"""`orthobench plan OVERRIDES|TABLE...`: what a run, a sweep or published tables would cost, from a few steps."""

import time

from orthobench.terminal import duration_text, say

WARM_UP, MEASURED = 1, 3


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
    from orthobench.memory import GIB, estimate
    from orthobench.recording.files import read_json
    from orthobench.sweep import jobs

    _, overrides, folders = split([word for word in arguments if word not in ("-m", "--multirun")])
    costs: dict[str, float] = {}
    states: dict[str, int] = {}
    missing_s = 0.0
    for job in jobs(parse(overrides, folders)):
        exp: Experiment = experiment(job, folders)
        record = read_json(exp.settings.folder / "record.json")
        state = record["status"] if record else "missing"
        states[state] = states.get(state, 0) + 1
        key = repr({**exp.settings.identity, "seed": 0})
        if key not in costs:
            costs[key] = seconds_per_step(exp)
        steps = exp.duration.steps or 0
        total = costs[key] * steps
        if state not in ("done", "diverged"):
            missing_s += total
        cost = f"{steps:,} steps x {1000 * costs[key]:.1f} ms = {duration_text(total)}"
        say(
            f"{exp.run_id}  {state:8}  {exp.parameters['total']:,} parameters, {cost}, "
            f"{estimate(exp.model, exp.task) / GIB:.2f} GiB"
        )
    say(
        ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
        + f"; {duration_text(missing_s)} of training to go"
    )
    return 0


def seconds_per_step(exp: "object") -> float:
    """Seconds of one training step, the fastest of a few, on this machine's CPU; evaluation is not counted."""
    import torch

    from orthobench import builder
    from orthobench.app import Experiment

    assert isinstance(exp, Experiment)
    torch.set_num_threads(1)
    optimizer = builder.build_optimizer(exp.settings, exp.model)
    exp.task.check()
    times = []
    for index in range(WARM_UP + MEASURED):
        start = time.perf_counter()
        x, target, *mask = exp.task.batch("train", 0, index % exp.task.batches("train"))
        loss = exp.task.loss(exp.model(x)[0], target, *mask)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        times.append(time.perf_counter() - start)
    return min(times[WARM_UP:])
