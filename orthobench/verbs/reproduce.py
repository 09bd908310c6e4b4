"""`orthobench reproduce TABLE...|PAPER...|all [--preset NAME]`: run published tables, record them and render them."""

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from orthobench.config.words import MOST, choices, key, shortened
from orthobench.errors import ConfigError
from orthobench.study.catalogue import SHIPPED, Catalogue
from orthobench.study.tables.table import FULL
from orthobench.verbs.arguments import Parser

if TYPE_CHECKING:
    from orthobench.study.reproduce.plan import PlannedRun
    from orthobench.study.tables.table import Table

DIGITS = 20  # of the largest seed
ENOUGH = 4  # runs for every process, before the next cell of a searched table is begun
WORDS = {
    "--seeds": "how many seeds (1, 2, ...), or which ones: 10, 4..10 or 1,2,7; default: those of the table",
    "--models": "cells of a searched table, such as mine,gru; a model of --config-dir joins its rows",
    "--preset": "full, or a shortened version, which fills a table of its own: short, smoke",
    "--budget": "time after which nothing more is started, such as 2h",
    "--fits": "as --budget, and a run that does not fit into the time that is left, by its kept cost, is not begun",
    "--cheapest": "rows of published tables that fit into so many hours of one core, most results an hour first: 40h",
    "--jobs": "how many runs side by side; default: 1, or as many as the launcher's settings say",
    "--launcher": "where runs are done: local (this machine), slurm, ray; hydra.launcher.KEY=VALUE sets it",
}


@dataclass(frozen=True)
class Selection:
    """Selection of runs and tables.

    Attributes:
        names: tables, papers or all.
        rows, seeds: some of them; null for those of the table.
        models: cells of searched tables; null for all that these have.
        extra: further words for every run, which must not change its numbers.
    """

    names: tuple[str, ...]
    rows: tuple[str, ...] | None
    seeds: tuple[int, ...] | None
    extra: tuple[str, ...]
    models: tuple[str, ...] | None = None

    @classmethod
    def of(cls, overrides: list[str], names: list[str] | None = None) -> "Selection":
        """`TABLE... [experiment=TABLE] [cell=A,B] [seed=1,2]` and other words; without a table all are others.

        Raises:
            ConfigError: not Hydra's grammar, or a seed that is no whole number from 1 on.
        """
        if not names and not any(key(word) == "experiment" for word in overrides):
            return cls((), None, None, tuple(overrides))
        found = {key(word): choices(word) for word in overrides if key(word) in ("experiment", "cell", "seed")}
        tables = (*(names or ()), *found.get("experiment", ()))
        rows = tuple(found["cell"]) if "cell" in found else None
        seeds = tuple(map(_whole, found["seed"])) if "seed" in found else None
        return cls(tables, rows, seeds, tuple(word for word in overrides if key(word) not in found))


def main(arguments: list[str]) -> int:
    """Run what is missing; returns 0, or the code of the first run that failed.

    Raises:
        ConfigError: no such table, preset or row, or a word that changes a table's numbers.
    """
    parser = Parser(__doc__)
    parser.add_argument("--seeds", help=WORDS["--seeds"])
    parser.add_argument("--models", metavar="A,B", help=WORDS["--models"])
    parser.add_argument("--preset", default=FULL, help=WORDS["--preset"])
    parser.add_argument("--budget", help=WORDS["--budget"])
    parser.add_argument("--fits", metavar="TIME", help=WORDS["--fits"])
    parser.add_argument("--cheapest", metavar="TIME", help=WORDS["--cheapest"])
    parser.add_argument("--jobs", type=int, help=WORDS["--jobs"])
    parser.add_argument("--launcher", metavar="NAME", help=WORDS["--launcher"])
    parser.add_folders()
    given = parser.read(arguments)
    selection = Selection.of(given.overrides, given.names or (["all"] if given.cheapest else []))
    if given.budget and given.fits:
        raise ConfigError(f"--budget {given.budget} and --fits {given.fits} are two limits of one time: give one.")
    if not selection.names:
        raise ConfigError("reproduce needs a table, a paper or all, for example `orthobench reproduce sgornn/table2`.")
    if given.seeds is not None:
        selection = replace(selection, seeds=seeds_of(given.seeds))
    if given.models is not None:
        selection = replace(selection, models=models_of(given.models))
    limit = given.fits or given.budget
    return run(
        selection,
        given.preset,
        given.catalogue,
        limit,
        given.jobs,
        given.launcher,
        given.fits is not None,
        given.cheapest,
    )


def run(
    selection: Selection,
    preset: str = FULL,
    catalogue: Catalogue = SHIPPED,
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
    from orthobench.common import signals
    from orthobench.common.terminal import say
    from orthobench.config.launchers import split
    from orthobench.config.words import seconds
    from orthobench.report import tables
    from orthobench.study.launcher import named
    from orthobench.study.reproduce.cheapest import chosen as best_rows
    from orthobench.study.reproduce.plan import first_cells, plan, results_of, take_over
    from orthobench.study.reproduce.reproduce import Runner, reproduce

    chosen = catalogue.select(selection.names)
    refuse_models(selection, chosen)
    catalogue.tables()  # all that is rendered at the end is refused before work starts
    end = None if budget is None else time.monotonic() + seconds(budget, "--fits" if fits else "--budget")
    about, extra = split(list(selection.extra))
    selection = replace(selection, extra=tuple(extra))
    take_over(chosen, results_of(selection.extra, preset), preset)
    place, only, code = None, None, 0
    if cheapest is not None:
        of_runs = selection.seeds, selection.rows, selection.extra
        rows, _ = best_rows(chosen, preset, *of_runs, seconds(cheapest, "--cheapest"))
        only = [(one.table, one.row) for one in rows]
    failed: set[tuple[str, int]] = set()  # cells of searched tables of which a run failed
    more = True
    with signals.watched(program=True):
        while more:  # what a fair table reports follows from its tuning
            found, results = plan(chosen, preset, selection.seeds, selection.rows, selection.extra, selection.models)
            if only is not None:
                found.only(only)
            left = None if end is None else end - time.monotonic()
            if found.runs and place is None:
                place = named(launcher, about, Path(found.runs[0].settings.run["runs_root"]))
            at_once = place.at_once if jobs is None and place is not None else max(jobs or 1, 1)
            found.runs = [run for run in found.runs if (run.table.name, run.place) not in failed]
            first_cells(found, ENOUGH * at_once)
            runner = Runner(results, at_once, left, place, fits)
            code = reproduce(found, runner) or code
            wrong = {run for run, own in runner.codes.items() if own != 0}
            failed |= {(run.table.name, run.place) for run in wrong}
            more = (
                bool(found.later and found.runs)
                and _goes_on(wrong, runner.codes)
                and len(runner.codes) == len(found.runs)
            )
        known = catalogue.papers()
        parts = tuple(dict.fromkeys(table.paper for table in chosen if table.paper in known))
        for path in tables.write(results, parts, catalogue):
            say(f"wrote {path}")
    return code


def _goes_on(wrong: "set[PlannedRun]", codes: "dict[PlannedRun, int]") -> bool:
    """Tell whether other cells can be run after these runs failed: in searched tables, unless the call was stopped."""
    from orthobench.errors import Stopped

    return all(run.table.search is not None and codes[run] != Stopped.exit_code for run in wrong)


def models_of(text: str) -> tuple[str, ...]:
    """The names in `mine,gru`.

    Raises:
        ConfigError: there is none.
    """
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    if not names:
        raise ConfigError("--models needs one or more names, such as --models mine,gru.")
    return names


def refuse_models(selection: Selection, tables: "list[Table]") -> None:
    """Refuse `--models` beside a table whose rows are fixed, and beside `cell=`.

    Raises:
        ConfigError: it is one of these.
    """
    if selection.models is None:
        return
    if selection.rows is not None:
        raise ConfigError("--models and cell= both say which cells are meant; give one of them.")
    other = next((table.name for table in tables if table.search is None), None)
    if other is not None:
        raise ConfigError(f"--models is for searched tables, such as fair2/cued_copying; {other} has rows of its own.")


def seeds_of(text: str) -> tuple[int, ...]:
    """`3` is the first three, `4..10` is from 4 to 10, `1,2,7` are these.

    Raises:
        ConfigError: it is none of these.
    """
    first, dots, last = text.partition("..")
    if dots:
        low, high = _whole(first), _whole(last)
        if low > high:
            raise ConfigError(f"--seeds {text} has no seed; write {last}..{first}.")
        return _seeds(low, high)
    if "," not in text:
        return _seeds(1, _whole(text))
    return tuple(_whole(part) for part in text.split(",") if part)


def _seeds(low: int, high: int) -> tuple[int, ...]:
    if high - low >= MOST:
        raise ConfigError(f"--seeds has {high - low + 1:,} seeds; {MOST:,} may be asked for at once.")
    return tuple(range(low, high + 1))


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= DIGITS) or int(text) < 1:
        raise ConfigError(f"seed {shortened(text)} is not a whole number from 1 on.")
    return int(text)
