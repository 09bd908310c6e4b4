"""A user's own runs, read from their folders: those that are finished, and why others are left out."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orthobench.common.program import uncollected
from orthobench.common.registry import find
from orthobench.common.schema import did_you_mean
from orthobench.config import recorded
from orthobench.config.recorded import by_key
from orthobench.config.words import choices, key
from orthobench.errors import ConfigError, OrthobenchError
from orthobench.recording.claim import is_held
from orthobench.recording.digest import FINAL, read_sealed
from orthobench.recording.files import within
from orthobench.recording.sources import changed, changed_yaml, refuse_unrecorded
from orthobench.study.records.records import Line, line
from orthobench.study.tables.table import FULL
from orthobench.tasks.metric import Metric

NAMED = ("model", "task", "optimizer", "schedule")
FILES = ("record.json", "config.yaml", "claim.json")


@dataclass(frozen=True)
class OwnRun:
    """A finished run.

    Attributes:
        line: its numbers, as the records of a table hold them.
        settings: what changes its numbers, by the keys of the command line.
        record: its record.json.
        stale: why it is not what the same command would give now; empty where nothing is known against it.
    """

    line: Line
    settings: dict[str, Any]
    record: dict[str, Any]
    stale: tuple[str, ...] = ()

    @property
    def finished(self) -> str:
        """When it was finished, as text that sorts by time; empty where its record does not say."""
        return str((self.record.get("time") or {}).get("finished") or "")

    @property
    def score(self) -> Metric:
        """The test score that its task is judged by, as `test/NAME`.

        Raises:
            ConfigError: its task is not known here.
        """
        task: Any = find("task", self.record["task"], "task")
        drawn = [name.removeprefix("val/") for name in self.record.get("curve") or {} if name.startswith("val/")]
        found = task.metric_of(drawn[0] if drawn else task.metric)
        return Metric(f"test/{found.name}", found.unit, found.direction, found.bounds, found.resolution)


@dataclass(frozen=True)
class OwnRuns:
    """The runs in some folders.

    Attributes:
        finished: by folder's name.
        left_out: the folder of each run that does not count, and why: it is not finished, or its record cannot be read.
    """

    finished: tuple[OwnRun, ...]
    left_out: tuple[tuple[Path, str], ...] = ()

    def why_left_out(self) -> dict[str, list[Path]]:
        """The folders of the runs that do not count, by the reason."""
        found: dict[str, list[Path]] = {}
        for folder, why in self.left_out:
            found.setdefault(why, []).append(folder)
        return found

    def of(self, words: Iterable[str]) -> "OwnRuns":
        """Those whose settings are among the values that `key=value,value` words name.

        Raises:
            ConfigError: no run has a setting of this name or value.
        """
        kept = self.finished
        for word in words:
            name, values = key(word), choices(word)
            known = dict.fromkeys(text(run.settings[name]) for run in self.finished if name in run.settings)
            if not known:
                keys = dict.fromkeys(key for run in self.finished for key in run.settings)
                raise ConfigError(f"{word}: no run has the setting {name}; {did_you_mean(name, keys)}")
            for value in values:
                if text(_number(value)) not in known:
                    raise ConfigError(f"{word}: no run has {name}={value}; choose among {', '.join(known)}.")
            wanted = {text(_number(value)) for value in values}
            kept = tuple(run for run in kept if name in run.settings and text(run.settings[name]) in wanted)
        return OwnRuns(kept, self.left_out)


def read(roots: Iterable[Path]) -> OwnRuns:
    """Every run under some roots, each of which holds runs or is one.

    Raises:
        ConfigError: a folder is missing, or there is no run in it.
    """
    with uncollected():
        return _read(roots)


def _read(roots: Iterable[Path]) -> OwnRuns:
    found: dict[str, tuple[Path, OwnRun]] = {}
    left_out = []
    for folder in roots:
        places = _runs(folder)
        if not places:
            if folder.is_dir():
                raise ConfigError(f"{folder} has no runs: name a folder of runs, such as runs/.")
            raise ConfigError(f"{folder} is not a folder: make runs first, or name the folder that they are in.")
        for place in places:
            try:
                run = _run(place if place == folder else within(folder, place.name))
            except OrthobenchError as error:
                left_out.append((place, f"left out, {str(error).rstrip('.')}"))
                continue
            except OSError as error:
                left_out.append((place, f"left out, it cannot be read: {error.strerror}"))
                continue
            if run.line.run_id in found:
                left_out.append((place, "counted once, it is in another of the folders too"))
            else:
                found[run.line.run_id] = place, run
    for name, other, why in _again(run for _, run in found.values()):
        left_out.append((found.pop(name)[0], f"left out, {other} has its settings and seed and {why}"))
    return OwnRuns(tuple(run for _, run in found.values()), tuple(left_out))


def _again(runs: Iterable[OwnRun]) -> list[tuple[str, str, str]]:
    """The runs of a seed that another run of the same settings stands for: both names, and why.

    Their code differs, or files that are not theirs alone: a seed counts once, by the run that is not stale, or else by
    the one that was finished last.
    """
    alike: dict[str, list[OwnRun]] = {}
    for run in runs:
        alike.setdefault(json.dumps(run.settings, sort_keys=True, default=str), []).append(run)
    found = []
    for same in alike.values():
        *others, best = sorted(same, key=lambda run: (not run.stale, run.finished))
        for other in others:
            why = "is not stale" if other.stale and not best.stale else "was finished later"
            found.append((other.line.run_id, best.line.run_id, why))
    return found


def text(value: Any) -> str:
    """A setting's value as it is shown; 1e-3 and 0.001 are one."""
    if isinstance(value, bool) or value is None:
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, float | int):
        return f"{value:g}" if isinstance(value, float) else str(value)
    return f"[{', '.join(map(text, value))}]" if isinstance(value, list | tuple) else str(value)


def _runs(folder: Path) -> list[Path]:
    if _is_run(folder):
        return [folder]
    return sorted(path for path in folder.glob("*") if _is_run(path)) if folder.is_dir() else []


def _is_run(folder: Path) -> bool:
    try:
        return any((folder / name).is_file() for name in FILES)
    except PermissionError:  # which is told where it is read
        return True


def _run(folder: Path) -> OwnRun:
    """A finished run.

    Raises:
        OrthobenchError: it is not finished, or its record cannot be used; the sentence says why.
    """
    path = within(folder, "record.json")
    record = read_sealed(path)
    if (record is None or record.get("status") not in FINAL) and is_held(folder):
        raise OrthobenchError("it is running now")
    if record is None:
        raise OrthobenchError(
            "record.json is damaged" if path.is_file() else "it has no record, as if it had been killed"
        )
    if record.get("status") not in FINAL:
        raise OrthobenchError(f"{record.get('status')}, {record.get('reason')}")
    if record.get("run_id") != folder.resolve().name:
        raise OrthobenchError(f"its record is that of another run, {record.get('run_id')}")
    try:
        find("task", record["task"], "task")
        settings, stale = _settings(record)
        unnamed = next((key for key in NAMED if not isinstance(settings.get(key), str)), None)
        if unnamed is not None:
            raise OrthobenchError(f"its record names no {unnamed}")
        return OwnRun(line(record, FULL, record["run_id"], {}, 1), settings, record, tuple(stale))
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise OrthobenchError(f"its record lacks {error}, as one of another version") from error


def _settings(record: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Its settings with today's defaults, or as they are recorded where these do not suit; and what makes it stale."""
    from orthobench.recording.record import other_code  # which imports torch

    other = other_code(record)
    stale = [f"made by other code, {other}"] if other else []
    try:
        refuse_unrecorded(record.get("sources"), recorded.named_files(record["config"]), "record.json")
        settings = recorded.settings(record["config"])
    except OrthobenchError as error:
        return by_key(record["config"]), [*stale, f"its settings are refused today: {str(error).rstrip('.')}"]
    if settings.digest != record.get("identity", settings.digest):
        stale.append("the same settings name another run today")
    sources = record.get("sources")
    stale += [f"{name} has changed" for name in (*changed(sources, settings), *changed_yaml(sources, settings))]
    return by_key(settings.as_dict()), stale


def _number(value: str) -> Any:
    """A value of the command line as the number that it may be."""
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value
