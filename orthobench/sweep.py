"""Many runs: one child process per job, whatever the launcher, so that none can harm another.

Hydra's launcher gets the numbers of the jobs that are left, not their words: those that are done cost nothing.
"""

import itertools
import json
import os
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orthobench import signals
from orthobench.child import FOLDER, STOP, Job, outcome, text_of
from orthobench.composer import Composer
from orthobench.config import Word, conf_dir, parse, quoted
from orthobench.errors import ConfigError, Stopped, StorageError
from orthobench.recording.files import make_folder, write_json
from orthobench.recording.sealed import final
from orthobench.settings import Settings
from orthobench.terminal import complain, say

DIVERGED = 4
ROUNDS = 3
BATCH = 500


@dataclass(frozen=True)
class Cell:
    """One job of a sweep."""

    words: list[str]
    folder: Path
    digest: str
    timeout: float | None

    @property
    def label(self) -> str:
        """The job as its user would type it."""
        return text_of(self.words)

    def listed(self, number: int) -> dict[str, Any]:
        """What its own process needs to know."""
        folder = str(self.folder.absolute())
        return {"number": number, "words": self.words, "folder": folder, "timeout": self.timeout}

    def code(self) -> int | None:
        """The exit code that its record promises; null while it has no final one."""
        record = final(self.folder / "record.json")
        if record is None or record.get("identity") not in (None, self.digest):
            return None
        return DIVERGED if record["status"] == "diverged" else 0


def jobs(words: list[Word]) -> list[list[str]]:
    """The overrides of every job of a sweep, in Hydra's order: the last key varies fastest.

    Raises:
        ConfigError: a value that cannot be expanded.
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    choices = []
    for word in words:
        if not word.sweep:
            choices.append([word.text])
            continue
        try:
            override = OverridesParser.create().parse_override(word.text)
            choices.append([f"{word.prefix}{word.key}={value}" for value in override.sweep_string_iterator()])
        except HydraException as error:
            raise ConfigError(f"{word.text!r} cannot be expanded: {str(error).splitlines()[0]}.") from error
    return [list(job) for job in itertools.product(*choices)]


def plan(words: list[Word], folders: tuple[Path, ...] = ()) -> list[Cell]:
    """The jobs of a sweep, all of them checked.

    Raises:
        ConfigError: any job is wrong.
    """
    composer, cells = Composer(folders), []
    for job in jobs([word for word in words if not word.key.startswith("hydra")]):
        settings = _fitted(composer.settings(job))
        cells.append(Cell(job, settings.folder, settings.digest, settings.run.get("timeout")))
    return cells


def sweep(overrides: list[str], folders: tuple[Path, ...] = ()) -> int:
    """Run what is left of a sweep; returns 0, or the code of the first job that failed.

    Raises:
        ConfigError: any job is wrong; nothing was started.
        StorageError: the sweep's own folder cannot be written.
    """
    words = parse(overrides, folders)
    cells = plan(words, folders)
    codes = [cell.code() for cell in cells]
    left = [number for number, code in enumerate(codes) if code is None]
    say(f"{len(cells)} runs" + (f", {len(cells) - len(left)} done already" if len(left) < len(cells) else ""))
    if not left:
        return _summary(cells, dict(enumerate(codes)), None)
    folder = _folder(cells[0].folder.parent)
    extra = [option for path in folders for option in ("--config-dir", str(path.resolve()))]
    for _ in range(ROUNDS):  # a launcher that died left some without a trace
        write_json(folder / "jobs.json", {"jobs": [cells[n].listed(n) for n in left]})
        _launch(folder, [word.text for word in words if word.key.startswith("hydra")], cells, left, extra)
        found = {n: _code(folder, n) for n in left}
        codes = [found.get(n, code) for n, code in enumerate(codes)]
        left = [n for n in left if found[n] is None]
        if not left or signals.asked() is not None:
            break
    return _summary(cells, dict(enumerate(codes)), folder)


def _fitted(settings: Settings) -> Settings:
    """The settings that the run itself would use: a budget of parameters decides the hidden size."""
    if settings.run.get("params") is None:
        return settings
    from orthobench.builder import fit_to_budget

    return fit_to_budget(settings)


def _folder(runs_root: Path) -> Path:
    """A folder for the traces of this sweep."""
    try:
        make_folder(runs_root / ".hydra")
        return Path(tempfile.mkdtemp(prefix="sweep-", dir=runs_root / ".hydra")).resolve()
    except OSError as error:
        raise StorageError(f"{runs_root} cannot be written: {error.strerror}; set runs_root=.") from error


def _launch(folder: Path, hydra_words: list[str], cells: list[Cell], left: list[int], extra: list[str]) -> None:
    """Let Hydra's launcher call `Job` for each of the jobs in jobs.json."""
    import hydra

    os.environ[FOLDER] = str(folder)
    numbers = f"++cell=range({len(left)})" if len(left) > 1 else "++cell=0"
    root = f"++runs_root={quoted(str(cells[0].folder.parent.absolute()))}"
    size = [] if any("max_batch_size" in word for word in hydra_words) else [f"hydra.sweeper.max_batch_size={BATCH}"]
    sys.argv = ["orthobench", "-m", *hydra_words, *size, root, numbers]
    over = threading.Event()
    watcher = threading.Thread(target=_pass_on, args=(folder, over), daemon=True)
    watcher.start()
    try:
        hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name="config")(Job(extra))()
    except SystemExit:  # Hydra has said why
        complain("orthobench: the launcher ended early; what it left is started again.")
    finally:
        over.set()
        watcher.join()


def _pass_on(folder: Path, over: threading.Event) -> None:
    """Tell the jobs' own processes, which a launcher may have put elsewhere, that a signal asked to stop."""
    while not over.wait(0.2):
        if signals.asked() is not None:
            (folder / STOP).touch()
            return


def _code(folder: Path, number: int) -> int | None:
    try:
        return int(json.loads((folder / f"{number}.json").read_text())["code"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _summary(cells: list[Cell], codes: dict[int, int | None], folder: Path | None) -> int:
    failed = {n: code for n, code in codes.items() if code}
    missing = [n for n, code in codes.items() if code is None]
    say(f"{len(cells) - len(failed) - len(missing)} of {len(cells)} runs done, {len(failed) + len(missing)} not")
    for number, code in failed.items():
        log = None if folder is None else folder / f"{number}.log"
        place = f"; {log}" if log is not None and log.is_file() else ""
        complain(f"[{number + 1}] {cells[number].label}: {outcome(code)}{place}")
    for number in missing:
        complain(f"[{number + 1}] {cells[number].label}: was never started or left no trace")
    if signals.asked() is not None:
        return Stopped.exit_code
    if failed:
        first = next(iter(failed.values()))
        return first if first > 0 else 128 - first
    return 1 if missing else 0
