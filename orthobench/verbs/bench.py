"""`orthobench bench [--quick|--gpu|--peers|--growth|--waits] | --record [TABLE|PAPER|fair|all]...`: measure speed."""

import time
from collections import deque
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orthobench.common.paths import folder
from orthobench.common.terminal import complain, say
from orthobench.errors import ConfigError, DataError
from orthobench.study.catalogue import Catalogue
from orthobench.study.tables.table import FAIR
from orthobench.verbs.arguments import Parser, results_root

if TYPE_CHECKING:
    from orthobench.bench.timing import Row

APART = {
    "peers": "ours beside the layers of torch and of other packages that are installed",
    "growth": "the exponents of time and memory in T, n, B, the runs of a sweep and the records",
    "waits": "whole commands, in times of `import torch`: about ten minutes",
}


PARTS = {  # modules of orthobench.bench, in the order in which they are measured
    "cpu": ("scans", "cells", "maps", "models", "ensembles", "training", "segments", "cores"),
    "cuda": ("gpu_steps", "ensembles", "training", "scans", "models", "maps", "cells"),
}


def main(arguments: list[str]) -> int:
    """Measure, print a line per result as it comes, and write speed.csv and speed.md.

    With `--record` the steps are measured that claims about seconds and the fair tables name, see `bench/steps.py`.

    Raises:
        ConfigError: an option or a table that is not known.
        Stopped: the machine is not quiet enough for `--record`, or a signal asked to stop.
    """
    parser = _parser()
    options = parser.read(arguments)
    if options.record:
        return _record(options.names, results_root(options.overrides), options.catalogue)
    if options.words:
        parser.error(f"{options.words[0]!r} is not an argument here")
    if options.gpu:
        from orthobench.bench import gpu_parts

        return gpu_parts.run_parts(options.output, options.parts)
    apart = [name for name in APART if getattr(options, name)]
    if len(apart) > 1:
        parser.error(f"--{apart[0]} and --{apart[1]} are two tables: give one")
    return _measure(options, apart[0] if apart else None)


def _parser() -> Parser:
    parser = Parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes and few rounds: within two minutes")
    parser.add_argument(
        "--output",
        type=partial(folder, what="--output"),
        default=Path("results/bench"),
        help="folder of speed.csv and speed.md",
    )
    parser.add_argument("--budget", help="time after which nothing more is begun, such as 5m")
    parser.add_argument(
        "--gpu", action="store_true", help="what a GPU that is there for minutes should measure first, within 320 s"
    )
    for option, words in APART.items():
        parser.add_argument(f"--{option}", action="store_true", help=words)
    parser.add_argument("--parts", type=int, default=3, choices=(1, 2, 3), help="of --gpu: within 100, 200 or 320 s")
    parser.add_argument(
        "--record", action="store_true", help="measure the steps that tables name: results/bench/steps.csv"
    )
    parser.add_folders()
    return parser


def _measure(options: Any, apart: str | None) -> int:
    """Measure all parts, or those of one table apart, line by line."""
    import torch

    from orthobench.bench import targets, timing
    from orthobench.bench.tables import Appended, line, write
    from orthobench.bench.timing import Bench
    from orthobench.config.words import seconds
    from orthobench.run.memory import keep_freed_memory

    end = None if options.budget is None else time.monotonic() + seconds(options.budget)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    bench = Bench(device, 0.7 if options.quick else 8.0, 3, 9 if options.quick else 15, quick=options.quick)
    name = apart or "speed"
    rows, table, page = [], Appended(options.output / f"{name}.csv"), options.output / f"{name}.md"
    torch.set_num_threads(1)
    keep_freed_memory()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    judged = targets.APART.get(apart, ()) if apart else targets.GPU if device.type == "cuda" else targets.CPU
    parts = [import_module(f"orthobench.bench.{part}") for part in ([apart] if apart else PARTS[device.type])]

    def measured() -> "Iterator[Row]":
        for part in parts:
            try:
                yield from part.measure(bench)
            except Exception as error:
                if device.type != "cuda":
                    raise
                said = str(error).splitlines()
                yield timing.Row("failed", part.__name__.rpartition(".")[2], said[0] if said else type(error).__name__)

    for row in chain(until(end, measured()), targets.judge(rows, judged)):
        rows.append(row)
        table.add(row)
        say(line(row))
    write(rows, page, device)
    say(f"wrote {table.path}\nwrote {page}")
    return 0


def until(end: float | None, rows: "Iterator[Row]") -> "Iterator[Row]":
    """The rows that come before a time of time.monotonic(); all of them where there is none."""
    for row in rows:
        yield row
        if end is not None and time.monotonic() > end:
            say("the budget is spent: what follows is not measured")
            return


def _record(names: list[str], results: Path, catalogue: Catalogue) -> int:
    """Measure what is not measured yet of some tables, of all by default; what its data are missing for is passed over.

    Returns 0, or the exit code of missing data.
    """
    import torch

    from orthobench.bench import steps
    from orthobench.bench.quiet import refuse_if_busy
    from orthobench.common import signals
    from orthobench.run.memory import keep_freed_memory
    from orthobench.study.costs import step_costs

    torch.set_num_threads(1)
    keep_freed_memory()
    asked = steps.groups(catalogue.select(names or ["all", FAIR]))
    if not asked:
        raise ConfigError(
            f"bench --record {' '.join(names)}: no claim or fair table there is about seconds"
            "; name another one, or none for all."
        )
    known, code = step_costs.read(results), 0
    due = ((f"[{number} of {len(asked)}]", group, steps.due(group, known)) for number, group in enumerate(asked, 1))
    missing = [(place, group, begun) for place, group, begun in due if begun is not None]
    path = step_costs.path_of(results)
    if not missing:
        say(f"{path} has all {len(asked)} groups of rows")
        return 0
    refuse_if_busy()
    turns = deque((place, group, steps.measure(group, begun, results)) for place, group, begun in missing)
    with signals.watched():
        while turns:  # a round of each, so that a minute in which the machine is slower is one round of any
            place, group, rounds = turns.popleft()
            try:
                told = next(rounds, None)
            except DataError as error:
                complain(f"{place} {group.label}: not measured; {error}")
                code = error.exit_code
                continue
            if told is not None:
                say(f"{place} {told}")
                turns.append((place, group, rounds))
    if path.is_file():
        say(f"wrote {path}; `orthobench tables` reads it")
    return code
