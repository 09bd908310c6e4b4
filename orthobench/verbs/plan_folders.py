"""`orthobench plan ... --folders`: the folders of runs, written for whatever is to start them one by one."""

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from orthobench.common.terminal import complain, say
from orthobench.config.settings import Settings
from orthobench.errors import ConfigError, OrthobenchError
from orthobench.study.catalogue import Catalogue

if TYPE_CHECKING:
    from orthobench.study.reproduce.selection import Selection


def of_sweep(overrides: list[str], catalogue: Catalogue) -> int:
    """Write the folders of the runs of a sweep that are left to do; returns the exit code.

    Raises:
        ConfigError: the settings of any run are wrong, or a word is about a launcher; nothing was written.
    """
    from orthobench.study.sweep import plan

    words = catalogue.parse(overrides)
    about = next((word.text for word in words if word.key.startswith("hydra")), None)
    if about is not None:
        raise ConfigError(
            f"{about} does not apply to --folders, which leaves it to you where each run is started: leave it out."
        )
    return write([run.settings for run in plan(words, catalogue)])


def of_tables(asked: "Selection") -> int:
    """Write the folders of the runs of tables that are left to do now; returns the exit code.

    Raises:
        ConfigError: no such table, preset or row; nothing was written.
    """
    from orthobench.study.reproduce.plan import plan

    found = plan(asked)
    for row, reason in found.refused.items():
        complain(f"orthobench: {row}: cannot be built, {reason}")
    code = write(replace(run.settings, run=run.settings.run | {"cell": run.job.row}) for run in found.runs)
    then = f"; {found.later:,} follow from them, which the same command writes then" if found.later else ""
    complain(f"`orthobench reproduce` with the same words records the runs when they are done{then}")
    return code


def write(runs: Iterable[Settings]) -> int:
    """Write the folder of each run that is not finished, and print its path on a line; returns the exit code.

    All else is told on standard error: how many are left and done, and what is refused, which hinders no other.
    """
    from orthobench.recording.run_folder import begin
    from orthobench.study.sweep_run import SweepRun

    codes, left, done = list[int](), 0, 0
    for settings in {one.folder: one for one in runs}.values():
        try:
            run = SweepRun([], settings)
            if (stale := run.stale()) is not None:
                raise ConfigError(stale)
            if run.code() is not None:
                done += 1
                continue
            say(str(begin(settings)))
            left += 1
        except OrthobenchError as error:
            complain(f"orthobench: {error}")
            codes.append(error.exit_code)
    refused = f", {len(codes)} refused" if codes else ""
    complain(f"{left:,} folders to do, {done:,} runs done already{refused}")
    return next(iter(codes), 0)
