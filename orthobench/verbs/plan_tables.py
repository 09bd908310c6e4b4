"""`orthobench plan TABLE...`: runs recorded, missing and impossible, and what the missing ones would take."""

from orthobench.errors import OrthobenchError
from orthobench.terminal import duration_text, say


def main(arguments: list[str]) -> int:
    """Print one line per cell with its seeds, size and cost on this machine, and the sums.

    Raises:
        ConfigError: no such table or preset, or an argument that is not one.
    """
    from orthobench import experiment
    from orthobench.report import records
    from orthobench.reproduce import plan, select
    from orthobench.verbs.plan_cost import Cost, measure, same_cost
    from orthobench.verbs.reproduce import WORDS, Parser

    parser = Parser("orthobench plan", description=__doc__)
    parser.add_argument("names", nargs="+", metavar="TABLE|PAPER|all")
    parser.add_argument("--preset", default="full", help=WORDS["--preset"])
    given = parser.parse_intermixed_args(arguments)
    extra = tuple(name for name in given.names if "=" in name)
    total_s, costs = 0.0, dict[str, Cost]()
    for name in select(word for word in given.names if "=" not in word):
        found, results = plan([name], given.preset, extra=extra)
        table = experiment.load(name)
        failed = sum(line.diverged for line in records.read(results, name) if line.preset == given.preset)
        say(
            f"{name}: {found.recorded} of {len(table.cells) * len(table.planned(given.preset))} runs recorded"
            f"{f', {failed} of them diverged' if failed else ''}, {len(found.runs)} to do"
        )
        cells = list(dict.fromkeys(run.job.cell for run in found.runs))
        for cell in cells:
            runs = [run for run in found.runs if run.job.cell == cell]
            words, key = [*runs[0].job.overrides, *extra], same_cost(runs[0].settings.identity)
            try:
                cost = costs[key] = costs[key] if key in costs else measure(words)
            except OrthobenchError as error:
                say(f"  {cell}: {error}")
                continue
            total_s += cost.total_s * len(runs)
            say(f"  {cell}: {len(runs)} seed{'s' * (len(runs) > 1)}, {cost} each")
        for cell, reason in found.refused.items():
            say(f"  {cell.split()[1]}: cannot be built, {reason}")
    say(f"{duration_text(total_s)} to go on this machine, one run at a time")
    return 0
