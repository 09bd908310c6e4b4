"""Sweeps: one child process per job with any launcher, so that no job can harm another.

A launcher of this program is given the jobs that are left. One of Hydra's gets their numbers, not their words, so that
finished jobs cost nothing. With `ensemble=true` a job is several runs where a GPU can train them as one program.
"""

import itertools
import json
import math
import os
import sys
import tempfile
import threading
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from orthobench import signals
from orthobench.config.compose import Word
from orthobench.config.configuration import Configuration
from orthobench.config.files import conf_dir
from orthobench.config.launchers import launcher_settings
from orthobench.config.settings import Settings
from orthobench.config.words import MOST, expanded, parsed, quoted, refuse_twice
from orthobench.errors import ConfigError, Stopped, StorageError, code_of
from orthobench.launch.launchers import made
from orthobench.launch.processes import Job, Pool, exit_code, label, outcome
from orthobench.launch.workers import Launcher
from orthobench.recording.digest import final
from orthobench.recording.files import make_folder, read_json, write_json
from orthobench.recording.sources import refuse_changed
from orthobench.terminal import complain, say

FOLDER = "ORTHOBENCH_SWEEP"
STOP = "stop"
LOGS = ".launched"
ROUNDS = 3
BATCH = 500


@dataclass(frozen=True)
class SweepRun:
    """One run of a sweep."""

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


class Start:
    """The function that Hydra calls for one job, in whatever place its launcher chose.

    Args:
        extra: command-line options for the child, such as `--config-dir`.
    """

    def __init__(self, extra: list[str]) -> None:
        self.extra = extra

    def __call__(self, cfg: Any) -> int:
        from hydra.core.hydra_config import HydraConfig

        folder = Path(os.environ[FOLDER])
        listed = read_json(folder / "jobs.json")
        assert listed is not None
        given = listed["jobs"][int(cfg.cell)]
        first = folder / f"{given['numbers'][0]}.log"
        shown = "BasicLauncher" in HydraConfig.get().launcher._target_ and sys.stdout.isatty() and sys.stderr.isatty()
        log = None if shown else first
        job = _job(given, log, first.with_suffix(".members.json"))
        with signals.watched():
            pool = Pool(1, self.extra, lambda: signals.asked() is not None or (folder / STOP).exists())
            ended = [code for some in pool.run([job]) for _, code in some]
            codes = job.codes(ended[0] if ended else Stopped.exit_code)
        _tell(folder, given, job, codes)
        return exit_code(codes)


def _job(given: dict[str, Any], log: Path | None, members: Path) -> Job:
    """A job by its entry in jobs.json."""
    folders = [Path(path) for path in given["folders"]]
    return Job(given["words"], folders, given["timeout"], log, members, given["fork"])


def _tell(folder: Path, given: dict[str, Any], job: Job, codes: list[int]) -> None:
    """Write the exit codes of a job's runs into the sweep's folder, and say them."""
    for number, words, code, path in zip(given["numbers"], job.words, codes, job.folders, strict=True):
        write_json(folder / f"{number}.json", {"code": code})
        record = final(path / "record.json")
        told = "is running elsewhere" if code == 0 and record is None else outcome(code)
        told += _score(record) if code == 0 and record is not None else _why(job)
        (say if code == 0 else complain)(f"[{number + 1}] {label(words)}: {told}")


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
        StorageError: the sweep's own folder cannot be written.
    """
    refuse_twice(overrides)
    words = configuration.parse(overrides)
    launcher = [word.text for word in words if word.key.startswith("hydra")]
    chosen = launcher_settings(launcher)
    cells = _apart(plan(words, configuration))
    codes = [cell.code() for cell in cells]
    left = [number for number, code in enumerate(codes) if code is None]
    done = sum(code not in (None, ConfigError.exit_code) for code in codes)
    say(f"{len(cells)} runs" + (f", {done} done already" if done else ""))
    if not left:
        return _summary(cells, dict(enumerate(codes)), None)
    folder = _folder(cells[0].folder.parent)
    own = None if "_target_" in chosen else made(chosen, cells[0].folder.parent)
    extra = configuration.arguments
    for _ in range(ROUNDS):  # a launcher that died may have left jobs that never started
        listed = _list(folder, cells, left)
        if own is None:
            _launch(folder, launcher, cells, len(listed), extra)
        else:
            _pool(folder, listed, extra, own)
        found = {n: _code(folder, n) for n in left}
        codes = [found.get(n, code) for n, code in enumerate(codes)]
        left = [n for n in left if found[n] is None]
        if not left or signals.asked() is not None:
            break
    return _summary(cells, dict(enumerate(codes)), folder, own is not None)


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


def _pool(folder: Path, listed: list[dict[str, Any]], extra: list[str], own: Launcher) -> None:
    """Let a launcher of this program carry out jobs, whose logs have the ids of their runs."""
    given = {_job(one, _log(one["folders"][0]), folder / f"{one['numbers'][0]}.members.json"): one for one in listed}
    pool = Pool(own.at_once, extra, lambda: signals.asked() is not None, place=own)
    for ended in pool.run(list(given)):
        for job, code in ended:
            _tell(folder, given[job], job, job.codes(code))


def _log(folder: str | Path) -> Path:
    return Path(folder).parent / LOGS / f"{Path(folder).name}.log"


def _fitted(settings: Settings) -> Settings:
    """The settings that the run itself would use, with the hidden size that a budget of parameters allows."""
    if settings.run.get("params") is None:
        return settings
    from orthobench.models.build import fit_to_budget

    return fit_to_budget(settings)


def _folder(runs_root: Path) -> Path:
    """A new folder for the lists, logs and exit codes of this sweep."""
    try:
        make_folder(runs_root / ".hydra")
        return Path(tempfile.mkdtemp(prefix="sweep-", dir=runs_root / ".hydra")).resolve()
    except OSError as error:
        raise StorageError(f"{runs_root} cannot be written: {error.strerror}; set runs_root=.") from error


def _list(folder: Path, cells: list[SweepRun], left: list[int]) -> list[dict[str, Any]]:
    """Write jobs.json, the runs of every job; returns them."""
    together = [n for n in left if cells[n].settings.run["ensemble"]]
    jobs = [[n] for n in left if not cells[n].settings.run["ensemble"]]
    if together:
        from orthobench.ensemble.grouping import groups

        jobs += [[together[i] for i in group] for group in groups([cells[n].settings for n in together], asked=True)]
    listed = [
        {
            "numbers": numbers,
            "words": [cells[n].words for n in numbers],
            "folders": [str(cells[n].folder.absolute()) for n in numbers],
            "timeout": cells[numbers[0]].settings.run["timeout"],
            "fork": cells[numbers[0]].settings.run["fork"],
        }
        for numbers in sorted(jobs)
    ]
    write_json(folder / "jobs.json", {"jobs": listed})
    return listed


def _launch(folder: Path, hydra_words: list[str], cells: list[SweepRun], count: int, extra: list[str]) -> None:
    """Let Hydra's launcher call `Start` for each of the jobs in jobs.json."""
    import hydra

    os.environ[FOLDER] = str(folder)
    numbers = f"++cell=range({count})" if count > 1 else "++cell=0"
    root = f"++runs_root={quoted(str(cells[0].folder.parent.absolute()))}"
    size = [] if any("max_batch_size" in word for word in hydra_words) else [f"hydra.sweeper.max_batch_size={BATCH}"]
    sys.argv = ["orthobench", "-m", *hydra_words, *size, root, numbers]
    over = threading.Event()
    watcher = threading.Thread(target=_pass_on, args=(folder, over), daemon=True)
    watcher.start()
    try:
        hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name="config")(Start(extra))()
    except SystemExit:  # Hydra has printed the reason
        complain("orthobench: the launcher ended early; what it left is started again.")
    finally:
        over.set()
        watcher.join()


def _pass_on(folder: Path, over: threading.Event) -> None:
    """Tell the processes of the jobs, which may run on other machines, that a signal asked the sweep to stop."""
    while not over.wait(0.2):
        if signals.asked() is not None:
            (folder / STOP).touch()
            return


def _code(folder: Path, number: int) -> int | None:
    try:
        return int(json.loads((folder / f"{number}.json").read_text())["code"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _summary(cells: list[SweepRun], codes: dict[int, int | None], folder: Path | None, own: bool = False) -> int:
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
        log = None if folder is None else _log(cells[number].folder) if own else folder / f"{number}.log"
        place = f"; {log}" if log is not None and log.is_file() else ""
        complain(f"[{number + 1}] {label(cells[number].words)}: {outcome(code)}{place}")
    for number in missing:
        complain(f"[{number + 1}] {label(cells[number].words)}: was never started, or ended without an exit code")
    if signals.asked() is not None:
        return Stopped.exit_code
    return exit_code(list(failed.values())) or (1 if missing else Stopped.exit_code if elsewhere else 0)
