"""Sweeps: one child process for each job that is left, wherever its launcher starts it, so that none can harm another.

With `ensemble=true` a job is several runs where a GPU can train them as one program.
"""

import itertools
import math
from pathlib import Path

from orthobench.common import signals
from orthobench.common.terminal import complain, say
from orthobench.config.compose import Word
from orthobench.config.configuration import Configuration
from orthobench.config.launchers import launcher_settings
from orthobench.config.settings import Settings
from orthobench.config.words import MOST, expanded, parsed, refuse_twice
from orthobench.errors import ConfigError
from orthobench.launch.launchers import make_launcher
from orthobench.launch.local import Local
from orthobench.launch.processes import Job, Pool, label, prepared
from orthobench.launch.workers import Launcher
from orthobench.study.overview import Overview
from orthobench.study.summary import show
from orthobench.study.sweep_run import Ending, SweepRun, told_apart, watched


def jobs(words: list[Word]) -> list[list[str]]:
    """The overrides of every job of a sweep, in Hydra's order: the last key varies fastest.

    Raises:
        ConfigError: a value cannot be expanded, or has none.
    """
    choices = []
    for word in words:
        if not word.sweep:
            choices.append([word.text])
            continue
        values = expanded(parsed(word.text), word.text)
        if not values:
            raise ConfigError(f"{word.text.lstrip('+')} has no values: give a start below the end, or a step below 0.")
        choices.append([f"{word.prefix}{word.key}={value}" for value in values])
    count = math.prod(map(len, choices))
    if count > MOST:
        raise ConfigError(f"this sweep has {count:,} runs; one may have {MOST:,}: sweep over less at once.")
    return [list(job) for job in itertools.product(*choices)]


def plan(words: list[Word], configuration: Configuration) -> list[SweepRun]:
    """The runs of a sweep, all of them checked.

    Raises:
        ConfigError: the settings of any run are wrong.
    """
    composer, cells = configuration.composer(), []
    for job in jobs([word for word in words if not word.key.startswith("hydra")]):
        cells.append(SweepRun(job, _fitted(composer.settings(job))))
    return cells


def sweep(overrides: list[str], configuration: Configuration) -> int:
    """Do the unfinished runs of a sweep; returns 0, or the exit code of the first that failed.

    Raises:
        ConfigError: the settings of any run are wrong; nothing was started.
        StorageError: a log cannot be written.
    """
    refuse_twice(overrides)
    words = configuration.parse(overrides)
    launcher = [word.text for word in words if word.key.startswith("hydra")]
    chosen = launcher_settings(launcher) if launcher else None
    cells = _apart(plan(words, configuration))
    codes = [cell.code() for cell in cells]
    left = [number for number, code in enumerate(codes) if code is None]
    done = sum(code not in (None, ConfigError.exit_code) for code in codes)
    say(f"{len(cells)} runs" + (f", {done} done already" if done else ""))
    endings = {number: Ending.of(cells[number], code) for number, code in enumerate(codes) if code is not None}
    if left:
        place = Local() if chosen is None else make_launcher(chosen, cells[0].folder.parent)
        endings |= _work(cells, _jobs(cells, left), place)
    return show(cells, endings, configuration)


def _work(cells: list[SweepRun], jobs: dict[Job, list[int]], place: Launcher) -> dict[int, Ending]:
    """Do the jobs, each with the numbers of its runs; returns how each run has ended that did."""
    left = sorted(number for numbers in jobs.values() for number in numbers)
    names, endings = told_apart(cells), dict[int, Ending]()
    shown = dict(zip(left, watched([cells[n] for n in left], [names[n] for n in left]), strict=True))

    def begun(job: Job) -> int | None:
        for number in jobs[job]:
            overview.begin(shown[number])
        return prepared(job, [cells[number].settings for number in jobs[job]])

    swept, before = ", ".join(dict.fromkeys(key for own in names for key in own)), len(cells) - len(left)
    with Overview(f"sweep of {swept}" if swept else "one run", shown.values(), before=before) as overview:
        pool = Pool(place.at_once, lambda: signals.asked() is not None, begun, place=place)
        for ended in pool.run(list(jobs)):
            for job, code in ended:
                for number, own in zip(jobs[job], job.codes(code), strict=True):
                    endings[number] = found = Ending.of(cells[number], own, job.log)
                    overview.end(shown[number], found.state, found.told, found.score, good=own == 0)
    return endings


def _apart(cells: list[SweepRun]) -> list[SweepRun]:
    """Each run once; says which words are of a run that is there already, as those are that change no number."""
    first: dict[Path, SweepRun] = {}
    for cell in cells:
        other = first.setdefault(cell.folder, cell)
        if other is not cell:
            own, those = ([w for w in a.words if w not in b.words] for a, b in ((cell, other), (other, cell)))
            given, kept = label(own or cell.words), label(those or other.words)
            complain(f"orthobench: {given} is the same run as {kept}, which is done once.")
    return list(first.values())


def _fitted(settings: Settings) -> Settings:
    """The settings that the run itself would use, with the hidden size that a budget of parameters allows."""
    if settings.run.get("params") is None:
        return settings
    from orthobench.models.build import fit_to_budget

    return fit_to_budget(settings)


def _jobs(cells: list[SweepRun], left: list[int]) -> dict[Job, list[int]]:
    """The jobs that are left, each with the numbers of its runs."""
    together = [n for n in left if cells[n].settings.run["ensemble"]]
    jobs = [[n] for n in left if not cells[n].settings.run["ensemble"]]
    if together:
        from orthobench.run.grouping import groups

        jobs += [[together[i] for i in group] for group in groups([cells[n].settings for n in together], asked=True)]
    firsts = {numbers[0]: numbers for numbers in jobs}
    return {
        Job.of([cells[n].settings for n in numbers], cells[first].log, cells[first].settings.run["timeout"]): numbers
        for first, numbers in sorted(firsts.items())
    }
