"""Run of a sweep: its words, its folder, and how it has ended."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from orthobench.common.terminal import duration_text
from orthobench.config.settings import Settings
from orthobench.config.words import key, value
from orthobench.errors import ConfigError, DivergedError, OrthobenchError, Stopped, code_of
from orthobench.launch.processes import TIMED_OUT, last_line, outcome
from orthobench.recording.digest import FINAL, final, read_sealed
from orthobench.recording.sources import refuse_changed
from orthobench.study.overview import Watched
from orthobench.study.reproduce.record_line import cost, steps
from orthobench.tasks.metric import Metric

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
        """The exit code by the run's record; None while it has no final record of its own.

        It is that of refused settings where plug-ins or data have changed since, see `stale`.
        """
        record = final(self.folder / "record.json")
        if record is None or record.get("identity") not in (None, self.settings.digest):
            return None
        return ConfigError.exit_code if self.stale(record) else code_of(record["status"])

    @property
    def log(self) -> Path:
        """The file for the output of its process."""
        return self.folder.parent / LOGS / f"{self.folder.name}.log"

    def stale(self, record: dict[str, Any] | None = None) -> str | None:
        """Why the finished run is not the one that is asked for; None where it is, or is not finished."""
        found = record or final(self.folder / "record.json")
        try:
            refuse_changed((found or {}).get("sources"), self.settings)
        except ConfigError as error:
            return str(error)
        return None

    @property
    def case(self) -> str:
        """The task and the length, whose runs are compared."""
        length = self.settings.task.get("T") or self.settings.run.get("T")
        return self.settings.task["name"] + (f", T={length}" if length else "")

    @property
    def metric(self) -> Metric | None:
        """The validation score that its task is judged by; None where that depends on data or on its record."""
        task = self.settings.parts.task
        return task.metric_of(task.metric) if isinstance(task.metric, str) else None


@dataclass(frozen=True)
class Ending:
    """Ending of a run.

    Attributes:
        code: its exit code; 0 without a record means that it runs elsewhere.
        state: `done`, `diverged`, `failed`, `stopped`, `stale` or `elsewhere`.
        told: what a line says of it: its scores and its time, or why it is not done.
        scores: those of the weights that were best in validation, by name.
        metric: the name of the score that its task is judged by.
    """

    code: int
    state: str
    told: str
    scores: Mapping[str, float]
    metric: str = ""

    @property
    def score(self) -> float | None:
        """Its validation score; None where it has none."""
        return self.scores.get(f"val/{self.metric}")

    @classmethod
    def of(cls, run: SweepRun, code: int, log: Path | None = None) -> "Ending":
        """The ending of a run with this exit code; `log` has the output of its process."""
        record = read_sealed(run.folder / "record.json") or {}
        if code == 0 and record.get("status") not in FINAL:
            return cls(0, "elsewhere", "is running elsewhere", {})
        if record.get("identity") not in (None, run.settings.digest):
            record = {}
        if code == 0:
            scores, metric = _scores(record)
            told = [f"{s} {metric} {scores[f'{s}/{metric}']:.4g}" for s in ("val", "test") if f"{s}/{metric}" in scores]
            spent = (record.get("time") or {}).get("wall_s")
            told += [] if spent is None else [duration_text(spent)]
            return cls(0, "done", ", ".join(["done", *told]), scores, metric)
        if stale := run.stale() if code == ConfigError.exit_code else None:
            return cls(code, "stale", stale, {})
        state = STATES.get(code, "failed")
        what = f"diverged ({outcome(code)})" if state == "diverged" else outcome(code)
        said = record.get("reason") if record.get("status") == state else None
        said = None if state == "stopped" else str(said or last_line(log)).removeprefix("orthobench: ").rstrip(".")
        return cls(code, state, f"{what}: {said}" if said else what, {})


STATES = {DivergedError.exit_code: "diverged", Stopped.exit_code: "stopped", TIMED_OUT: "stopped"}


def told_apart(runs: Sequence[SweepRun]) -> list[dict[str, str]]:
    """For each run, by key, the words that not all runs have: those that are swept."""
    common = set[str].intersection(*(set(run.words) for run in runs)) if runs else set()
    return [{key(word): value(word) for word in run.words if word not in common} for run in runs]


def named(values: Mapping[str, str], run: SweepRun) -> str:
    """The swept words of a run as one would type them; of a run by itself its name."""
    return " ".join(f"{key}={value}" for key, value in values.items()) or run.settings.run_id


def watched(runs: Sequence[SweepRun], names: Iterable[Mapping[str, str]]) -> list[Watched]:
    """The runs as they are shown while they are done, by what tells them apart."""
    several = len({run.case for run in runs}) > 1
    found = []
    for run, values in zip(runs, names, strict=True):
        columns = values or {"run": run.settings.run_id}
        shown = Watched(named(values, run), columns, run.folder, case=run.case if several else "", metric=run.metric)
        with suppress(OrthobenchError):  # its data are missing, which the run says itself
            shown.steps, shown.work = steps(run.settings), cost(run.settings)
        found.append(shown)
    return found


def _scores(record: Mapping[str, Any]) -> tuple[dict[str, float], str]:
    """The scores of a finished run, and the name of the one that its task is judged by; empty where it has none."""
    drawn = [name.removeprefix("val/") for name in record.get("curve") or {} if name.startswith("val/")]
    found = (record.get("metrics") or {}).get("best_val") or {}
    return {name: value for name, value in found.items() if value is not None}, drawn[0] if drawn else ""
