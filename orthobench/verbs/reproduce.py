"""`orthobench reproduce [TABLE...|PAPER...|all]`: run published tables, record them and render them."""

import argparse
from pathlib import Path
from typing import NoReturn

from orthobench.errors import ConfigError

WORDS = {
    "--seeds": "how many seeds (1, 2, ...), or which ones: 3 or 1,2,7; default: those of the table",
    "--preset": "full, or a shortened version, which fills a table of its own: short, smoke",
    "--budget": "time after which nothing more is started, such as 2h",
    "--jobs": "how many runs side by side",
}


class Parser(argparse.ArgumentParser):
    """A parser whose errors are ours."""

    def error(self, message: str) -> NoReturn:
        """Refuse the arguments."""
        raise ConfigError(f"{self.prog}: {message}.")


def main(arguments: list[str]) -> int:
    """Run what is missing; returns 0, or the code of the first run that failed.

    Raises:
        ConfigError: no such table, preset or cell, or a word that changes a table's numbers.
    """
    parser = Parser("orthobench reproduce", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="TABLE|PAPER|all")
    parser.add_argument("--seeds", help=WORDS["--seeds"])
    parser.add_argument("--preset", default="full", help=WORDS["--preset"])
    parser.add_argument("--budget", help=WORDS["--budget"])
    parser.add_argument("--jobs", type=int, default=1, help=WORDS["--jobs"])
    parser.add_argument("--config-dir", "-cd", type=Path, action="append", default=[], help="more configuration")
    given = parser.parse_intermixed_args(arguments)
    names = [name for name in given.names if "=" not in name]
    extra = [name for name in given.names if "=" in name]
    if not names:
        raise ConfigError("reproduce needs a table, a paper or all, for example `orthobench reproduce sgornn/table2`.")
    folders = tuple(given.config_dir)
    return run(names, given.preset, _seeds(given.seeds), None, given.budget, given.jobs, extra, folders)


def from_sweep(overrides: list[str], folders: tuple[Path, ...] = ()) -> int:
    """`-m experiment=TABLE [cell=A,B] [seed=1,2]`.

    Raises:
        ConfigError: see `main`.
    """
    from orthobench.experiment import key, value

    found = {key(word): value(word) for word in overrides if key(word) in ("experiment", "cell", "seed")}
    extra = [word for word in overrides if key(word) not in found]
    cells = found["cell"].split(",") if "cell" in found else None
    seeds = [_whole(seed) for seed in found["seed"].split(",")] if "seed" in found else None
    return run(found["experiment"].split(","), "full", seeds, cells, None, 1, extra, folders)


def run(
    names: list[str],
    preset: str,
    seeds: list[int] | None,
    cells: list[str] | None,
    budget: str | None,
    jobs: int,
    extra: list[str],
    folders: tuple[Path, ...],
) -> int:
    """Plan, run, record and render."""
    from orthobench import experiment
    from orthobench.report import tables
    from orthobench.report.published import PAPERS
    from orthobench.reproduce import Runner, plan, reproduce, seconds, select
    from orthobench.terminal import say

    chosen = select(names) if not folders else names
    found, results = plan(chosen, preset, seeds, cells, tuple(extra), folders)
    limit = None if budget is None else seconds(budget)
    runner = Runner(results, max(jobs, 1), limit, tuple(extra), folders)
    code = reproduce(found, runner, [experiment.load(name, folders) for name in chosen])
    papers = tuple(dict.fromkeys(name.split("/")[0] for name in chosen if name.split("/")[0] in PAPERS))
    for path in tables.write(results, papers):
        say(f"wrote {path}")
    return code


def _seeds(text: str | None) -> list[int] | None:
    """`3` is the first three, `1,2,7` are these."""
    if text is None:
        return None
    if "," not in text:
        return list(range(1, _whole(text) + 1))
    return [_whole(part) for part in text.split(",") if part]


def _whole(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise ConfigError(f"seed {text} is not a whole number from 1 on.")
    return int(text)
