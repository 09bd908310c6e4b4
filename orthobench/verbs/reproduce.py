"""`orthobench reproduce TABLE...|PAPER...|all [--preset NAME]`: run published tables, record them and render them."""

import time
from dataclasses import replace

from orthobench.errors import ConfigError
from orthobench.study.catalogue import SHIPPED, Catalogue
from orthobench.verbs.arguments import LAUNCHER, Parser
from orthobench.verbs.asked import Asked, add_options

WORDS = {
    "--budget": "time after which nothing more is started, such as 2h",
    "--fits": "as --budget, and a run that does not fit into the time that is left, by its kept cost, is not begun",
    "--jobs": "how many runs side by side; default: 1, or as many as the launcher's settings say",
}


def main(arguments: list[str]) -> int:
    """Run what is missing; returns 0, or the code of the first run that failed.

    Raises:
        ConfigError: no such table, preset or row, or a word that changes a table's numbers.
    """
    parser = Parser(__doc__)
    add_options(parser)
    parser.add_argument("--budget", help=WORDS["--budget"])
    parser.add_argument("--fits", metavar="TIME", help=WORDS["--fits"])
    parser.add_argument("--jobs", type=int, help=WORDS["--jobs"])
    parser.add_argument("--launcher", metavar="NAME", help=LAUNCHER)
    parser.add_folders()
    given = parser.read(arguments)
    asked = Asked.of(given.overrides, given)
    if given.jobs is not None and given.jobs < 1:
        raise ConfigError(f"--jobs {given.jobs} is out of range: it must be >= 1.")
    if given.budget and given.fits:
        raise ConfigError(f"--budget {given.budget} and --fits {given.fits} are two limits of one time: give one.")
    if not asked.names:
        raise ConfigError("reproduce needs a table, a paper or all, for example `orthobench reproduce sgornn/table2`.")
    return run(
        asked,
        given.catalogue,
        given.preset,
        budget=given.fits or given.budget,
        jobs=given.jobs,
        launcher=given.launcher,
        fits=given.fits is not None,
        cheapest=given.cheapest,
    )


def run(
    asked: Asked,
    catalogue: Catalogue = SHIPPED,
    preset: str | None = None,
    budget: str | None = None,
    jobs: int | None = None,
    launcher: str | None = None,
    fits: bool = False,
    cheapest: str | None = None,
) -> int:
    """Plan, run, record and render; see `main`.

    With `fits` a run whose cost is above what is left of the budget is not begun; `cheapest` is the time that rows are
    chosen for, see `study.reproduce.cheapest`.

    Raises:
        ConfigError: no such table, preset or row, or a word that changes a table's numbers.
    """
    from orthobench.common.terminal import say
    from orthobench.config.launchers import split
    from orthobench.config.words import seconds

    about, extra = split(list(asked.extra))
    selection = replace(asked, extra=tuple(extra)).selection(catalogue, preset)
    from orthobench.report import tables
    from orthobench.study.reproduce.cheapest import cheapest_rows
    from orthobench.study.reproduce.plan import take_over
    from orthobench.study.reproduce.reproduce import Reproduction

    catalogue.tables()  # all that is rendered at the end is refused before work starts
    end = None if budget is None else time.monotonic() + seconds(budget, "--fits" if fits else "--budget")
    take_over(selection)
    rows = None if cheapest is None else cheapest_rows(selection, seconds(cheapest, "--cheapest"))[0]
    code = Reproduction(selection, about, launcher, jobs, end, fits).run(rows)
    known = catalogue.papers()
    parts = tuple(dict.fromkeys(table.paper for table in selection.tables if table.paper in known))
    for path in tables.write(selection.results, parts, catalogue):
        say(f"wrote {path}")
    return code
