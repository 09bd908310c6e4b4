"""Sweeps: one child process for each job that is left, wherever its launcher starts it, so that none can harm another.

With `ensemble=true` a job is several runs where a GPU can train them as one program.
"""

import itertools
import math
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from orthobench.common import signals
from orthobench.common.terminal import complain, say
from orthobench.config.compose import Word
from orthobench.config.configuration import Configuration
from orthobench.config.launchers import launcher_settings
from orthobench.config.settings import Settings
from orthobench.config.words import MOST, expanded, parsed, refuse_twice
from orthobench.errors import ConfigError, Stopped, code_of
from orthobench.launch.launchers import made
from orthobench.launch.local import Local
from orthobench.launch.processes import Job, Pool, exit_code, label, outcome, prepared
from orthobench.recording.digest import final
from orthobench.recording.sources import refuse_changed

LOGS = ".launched"


@dataclass(frozen=True)
class SweepRun:
    """Run of a sweep."""

    words: list[str]
    settings: Settings

    @cached_property
    def folder(self) -> Path:
        """The run's folder."""
        return self.settings.folder

    def code(self) -> int | None:
        """The exit code by the run's record; null while it has no final record of its own.

        It is that of refused settings where plug-ins or data have changed since, see `stale`.
        """
        record = final(self.folder / "record.json")
        if record is None or record.get("identity") not in (None, self.settings.digest):
            return None
        return ConfigError.exit_code if self.stale(record) else code_of(record["status"])

    def stale(self, record: dict[str, Any] | None = None) -> str | None:
        """Why the finished run is not the one that is asked for; null where it is, or is not finished."""
        found = record or final(self.folder / "record.json")
        try:
            refuse_changed((found or {}).get("sources"), self.settings)
        except ConfigError as error:
            return str(error)
        return None


def _tell(cell: SweepRun, number: int, job: Job, code: int) -> None:
    """Say how a run of a job has ended."""
    record = final(cell.folder / "record.json")
    told = "is running elsewhere" if code == 0 and record is None else outcome(code)
    told += _score(record) if code == 0 and record is not None else _why(job)
    (say if code == 0 else complain)(f"[{number + 1}] {label(cell.words)}: {told}")


def _score(record: dict[str, Any]) -> str:
    """The test score of a finished run, as the end of a sentence; empty where its record has none."""
    drawn = [name.removeprefix("val/") for name in record.get("curve") or {} if name.startswith("val/")]
    scores = (record.get("metrics") or {}).get("best_val") or {}
    value = scores.get(f"test/{drawn[0]}") if drawn else None
    return "" if value is None else f", test {drawn[0]} {value:.4g}"


def _why(job: Job) -> str:
    """The last line that a run which failed has printed into its log, as the end of a sentence."""
    try:
        lines = [] if job.log is None else job.log.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return ""
    said = [line for line in lines if line.strip()]
    return f"; {said[-1]}" if said else ""


def jobs(words: list[Word]) -> list[list[str]]:
    """The overrides of every job of a sweep, in Hydra's order: the last key varies fastest.

    Raises:
        ConfigError: a value cannot be expanded.
    """
    choices = []
    for word in words:
        if not word.sweep:
            choices.append([word.text])
            continue
        values = expanded(parsed(word.text), word.text)
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
    codes = {number: cell.code() for number, cell in enumerate(cells)}
    left = [number for number, code in codes.items() if code is None]
    done = sum(code not in (None, ConfigError.exit_code) for code in codes.values())
    say(f"{len(cells)} runs" + (f", {done} done already" if done else ""))
    if left:
        place = Local() if chosen is None else made(chosen, cells[0].folder.parent)
        shown = chosen is None and sys.stdout.isatty() and sys.stderr.isatty()
        jobs = _jobs(cells, left, shown)
        runs = {job: [cells[n].settings for n in numbers] for job, numbers in jobs.items()}
        pool = Pool(
            place.at_once, lambda: signals.asked() is not None, lambda job: prepared(job, runs[job]), place=place
        )
        for ended in pool.run(list(jobs)):
            for job, code in ended:
                for number, own in zip(jobs[job], job.codes(code), strict=True):
                    codes[number] = own
                    _tell(cells[number], number, job, own)
    return _summary(cells, codes)


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


def _log(run: SweepRun) -> Path:
    return run.folder.parent / LOGS / f"{run.folder.name}.log"


def _fitted(settings: Settings) -> Settings:
    """The settings that the run itself would use, with the hidden size that a budget of parameters allows."""
    if settings.run.get("params") is None:
        return settings
    from orthobench.models.build import fit_to_budget

    return fit_to_budget(settings)


def _jobs(cells: list[SweepRun], left: list[int], shown: bool) -> dict[Job, list[int]]:
    """The jobs that are left, each with the numbers of its runs; their output goes to the terminal where `shown`."""
    together = [n for n in left if cells[n].settings.run["ensemble"]]
    jobs = [[n] for n in left if not cells[n].settings.run["ensemble"]]
    if together:
        from orthobench.run.grouping import groups

        jobs += [[together[i] for i in group] for group in groups([cells[n].settings for n in together], asked=True)]
    return {
        Job.of(
            [cells[n].settings for n in numbers],
            None if shown else _log(cells[numbers[0]]),
            cells[numbers[0]].settings.run["timeout"],
        ): numbers
        for numbers in sorted(jobs)
    }


def _summary(cells: list[SweepRun], codes: dict[int, int | None]) -> int:
    failed = {n: code for n, code in codes.items() if code}
    missing = [n for n, code in codes.items() if code is None]
    elsewhere = [n for n, code in codes.items() if code == 0 and cells[n].code() is None]
    done = len(cells) - len(failed) - len(missing) - len(elsewhere)
    told = f", {len(elsewhere)} running elsewhere" if elsewhere else ""
    say(f"{done} of {len(cells)} runs done{told}, {len(failed) + len(missing)} not")
    for number, code in failed.items():
        reason = cells[number].stale() if code == ConfigError.exit_code else None
        if reason:
            complain(f"[{number + 1}] {label(cells[number].words)}: {reason}")
            continue
        log = _log(cells[number])
        place = f"; {log}" if log.is_file() else ""
        complain(f"[{number + 1}] {label(cells[number].words)}: {outcome(code)}{place}")
    for number in missing:
        complain(f"[{number + 1}] {label(cells[number].words)}: was not started")
    if signals.asked() is not None:
        return Stopped.exit_code
    return exit_code(list(failed.values())) or (1 if missing else Stopped.exit_code if elsewhere else 0)
