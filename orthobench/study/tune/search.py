"""A tuning: an Optuna study in a journal beside the runs, and the trials that are left to this process.

Every trial is an ordinary run. A trial is worked on by the process that holds its claim; one that is open without a
claim was left by a process that ended, and is gone on with: its run resumes, or is found finished. Several processes
may work on one study.
"""

import hashlib
import json
import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from orthobench.common import signals
from orthobench.common.packages import install
from orthobench.common.terminal import complain
from orthobench.config.configuration import Configuration
from orthobench.config.ranges import SearchRange
from orthobench.config.settings import Settings
from orthobench.config.words import refuse_twice
from orthobench.errors import ConfigError, MemoryExhausted, Stopped, StorageError
from orthobench.launch.workers import Launcher
from orthobench.recording.claim import Claim
from orthobench.study.overview import Overview, Watched
from orthobench.study.reproduce.record_line import steps
from orthobench.study.sweep_run import SweepRun
from orthobench.study.tune.journal import refuse_damaged, storage
from orthobench.study.tune.trial import Outcome, TrialRun, follow

PRUNERS = ("none", "median", "halving")
WAIT_S = 0.2


@dataclass(frozen=True)
class Search:
    """Subject of a tuning.

    Attributes:
        words: the overrides that all trials have in common.
        ranges: the settings that are tried.
        configuration: what makes their settings.
    """

    words: tuple[str, ...]
    ranges: tuple[SearchRange, ...]
    configuration: Configuration

    def check(self) -> None:
        """Compose a run at both ends of every range and at every choice, the other settings at their first value.

        Raises:
            ConfigError: one of these runs is refused, a setting is given twice, or changes nothing.
        """
        for word in self.configuration.parse(self.words):
            if word.sweep:
                name, _, values = word.text.lstrip("+").partition("=")
                raise ConfigError(f"{name}={values} has several values: write '{name}={{{values}}}' to tune it.")
        if not self.ranges:
            raise ConfigError("nothing is to be tuned: give a range, such as 'optimizer.lr=log(1e-4,1e-1)'.")
        refuse_twice([*(one.key for one in self.ranges), *self.words])
        for one in self.ranges:
            ids = [self._composed(one.key, end).run_id for end in one.ends]
            if len(set(ids)) < len(ids):
                raise ConfigError(
                    f"{one.key}={one.text}: {' and '.join(one.ends)} give the same run; give a wider range."
                )

    @cached_property
    def first(self) -> Settings:
        """The settings with every range at its first value."""
        return self._composed("", "")

    @property
    def folder(self) -> Path:
        """Folder of the study: `<runs_root>/tune-<task>-<model>-<10 hex digits>`."""
        ranges = sorted((one.key, one.text.replace(" ", "")) for one in self.ranges)
        text = json.dumps([self.first.digest, ranges])
        name = f"tune-{self.first.run_id.rpartition('-')[0]}-{hashlib.sha256(text.encode()).hexdigest()[:10]}"
        return Path(self.first.run["runs_root"]) / name

    @cached_property
    def task(self) -> Any:
        """The task, of which no data is read that its metric does not depend on."""
        from orthobench.models.build import build_task

        return build_task(self.first)

    @property
    def score(self) -> str:
        """The validation score that is tuned, as `val/NAME`."""
        return f"val/{self.task.metric}"

    def run(self, trial: Any) -> SweepRun:
        """The run of a trial.

        Raises:
            ConfigError: these values do not suit each other.
        """
        words = [*self.words, *(one.word(trial) for one in self.ranges)]
        parsed = [word.text for word in self.configuration.parse(words)]
        from orthobench.models.build import fit_to_budget

        return SweepRun(parsed, fit_to_budget(self.configuration.settings(words)))

    def _composed(self, name: str, end: str) -> Settings:
        others = [one.ends[0] for one in self.ranges if one.key != name]
        return self.configuration.settings([*self.words, *others, *([end] if end else [])])


def open_study(search: Search, pruner: str = "none") -> Any:
    """The study of a search, a new one where there is none.

    Raises:
        ConfigError: Optuna is not installed.
        StorageError: its journal cannot be written or read.
    """
    optuna = import_optuna()
    made = {
        "none": optuna.pruners.NopPruner,
        "median": optuna.pruners.MedianPruner,
        "halving": optuna.pruners.SuccessiveHalvingPruner,
    }[pruner]()
    direction = "maximize" if search.task.higher_is_better else "minimize"
    name, path = search.folder.name, search.folder / "journal.log"
    with refuse_damaged(path):
        kept = {"storage": storage(path), "study_name": name, "load_if_exists": True}
        study = optuna.create_study(direction=direction, pruner=made, **kept)
        odd = next((one.number for one in study.get_trials(deepcopy=False) if not _is_of(search, one)), None)
    if odd is not None or study.direction.name != direction.upper():
        what = "the study" if odd is None else f"trial {odd + 1} in it"
        raise StorageError(f"{path} is damaged: {what} is another search's; move its folder away to begin anew.")
    return study


def _is_of(search: Search, trial: Any) -> bool:
    """Return True if what is read of a trial has the kind that it is taken for."""
    told = [trial.user_attrs.get(name, "") for name in ("run_id", "status", "reason")]
    known = {one.key: one for one in search.ranges}
    values = all(name in known and known[name].has(value) for name, value in trial.params.items())
    complete = trial.state.name != "COMPLETE" or (
        set(trial.params) == set(known) and told[0] != "" and trial.value is not None and math.isfinite(trial.value)
    )
    return values and complete and all(isinstance(text, str) for text in told)


def import_optuna() -> Any:
    """Optuna, without its messages.

    Raises:
        ConfigError: it is not installed.
    """
    try:
        import optuna
    except ImportError as error:
        raise ConfigError(f"tune needs Optuna, which is not installed: {install('tune')}.") from error
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


class Trials:
    """Works on the trials of a study, one after the other.

    Args:
        search: what is tuned.
        study: Optuna's study of it.
        count: how many trials there are to be in all.
        place: where their runs are done; this machine when None.
    """

    def __init__(self, search: Search, study: Any, count: int, place: Launcher | None = None) -> None:
        self.search, self.study, self.count, self.place = search, study, count, place
        known = sum(trial.state.is_finished() for trial in study.get_trials(deepcopy=False))
        tried = ", ".join(one.key for one in search.ranges)
        self.overview = Overview(f"tuning of {tried}", total=max(count, known), before=known)
        self._shown: dict[int, Watched] = {}

    def work_on(self, several: int) -> int:
        """`work` on several trials side by side; returns the code of the first failure."""
        with self.overview, ThreadPoolExecutor(several) as pool:
            codes = [one.result() for one in [pool.submit(self.work) for _ in range(several)]]
        failed = [code for code in codes if code not in (0, Stopped.exit_code)]
        still = signals.asked() is not None or self._open()
        return failed[0] if failed else Stopped.exit_code if still else 0

    def work(self) -> int:
        """Go on until there is nothing left for this process; returns an exit code.

        It is that of a run which no other values would help, such as one without data; that of a stopped program where
        a signal asked to stop, or where another process still works on a trial.
        """
        while signals.asked() is None:
            code = self._take_over()
            code = self._begin() if code is None else code
            if code is None:
                return Stopped.exit_code if self._open() else 0
            if code:
                return code
        return Stopped.exit_code

    def _open(self) -> list[Any]:
        return [trial for trial in self.study.get_trials(deepcopy=False) if not trial.state.is_finished()]

    def _take_over(self) -> int | None:
        """Go on with a trial that was left open; None where there is none that nobody works on."""
        from optuna.trial import Trial

        for frozen in self._open():
            with self._claim(frozen.number) as claim:
                if claim.held and any(frozen.number == other.number for other in self._open()):
                    return self._do(Trial(self.study, frozen._trial_id))
        return None

    def _begin(self) -> int | None:
        """Work on a new trial; None where there are as many as there are to be."""
        with Claim(self.search.folder / "claims" / "new") as claim:
            if not claim.held:
                time.sleep(WAIT_S)
                return 0
            number = len(self.study.get_trials(deepcopy=False))
            if number >= self.count:
                return None
            self.study.sampler = self._sampler(number)
            trial = self.study.ask()
        with self._claim(trial.number) as claim:
            return self._do(trial) if claim.held else 0

    def _sampler(self, number: int) -> Any:
        """A sampler whose draws follow from the study and the number of the trial, so that they can be made again."""
        from optuna.samplers import TPESampler

        text = f"{self.search.folder.name} {number}"
        return TPESampler(seed=int(hashlib.sha256(text.encode()).hexdigest()[:8], 16))

    def _claim(self, number: int) -> Claim:
        return Claim(self.search.folder / "claims" / str(number))

    def _do(self, trial: Any) -> int:
        """Run a trial and tell the study what came of it; returns 0, or the code with which the tuning ends."""
        try:
            run = self.search.run(trial)
        except ConfigError as error:
            self._tell(trial, Outcome("refused", str(error)))
            return 0
        trial.set_user_attr("run_id", run.settings.run_id)
        self.overview.begin(self._watched(trial, run))
        log = self.search.folder / "logs" / f"{trial.number}.log"
        work = TrialRun(run, self.search.score, log, self.place)
        outcome = follow(work, _reporter(trial))
        if outcome.status == "stopped":
            return Stopped.exit_code
        if outcome.code not in (0, ConfigError.exit_code, MemoryExhausted.exit_code):
            complain(f"orthobench: trial {trial.number + 1}, {run.settings.run_id}: {outcome.reason}")
            return outcome.code
        self._tell(trial, outcome)
        return 0

    def _tell(self, trial: Any, outcome: Outcome) -> None:
        from optuna.trial import TrialState

        states = {"done": TrialState.COMPLETE, "pruned": TrialState.PRUNED, "diverged": TrialState.PRUNED}
        trial.set_user_attr("status", outcome.status)
        if outcome.reason:
            trial.set_user_attr("reason", outcome.reason)
        self.study.tell(trial.number, outcome.value, states.get(outcome.status, TrialState.FAIL))
        told = outcome.reason if outcome.value is None else f"{self.search.score} {outcome.value:.4g}"
        told = f"{outcome.status}{f', {told}' if told else ''}"
        self.overview.end(self._watched(trial), outcome.status, told, outcome.value)

    def _watched(self, trial: Any, run: SweepRun | None = None) -> Watched:
        """The trial as it is shown; made where it is not known."""
        known = self._shown.get(trial.number)
        if known is None:
            values = {name: short(value) for name, value in trial.params.items()}
            label = " ".join(f"{name}={value}" for name, value in values.items())
            folder = self.search.folder if run is None else run.folder
            metric = self.search.task.metric_of(self.search.task.metric)
            known = Watched(label, values, folder, None if run is None else steps(run.settings), metric=metric)
            self._shown[trial.number] = known
        return known


def _reporter(trial: Any) -> Callable[[int, float], bool]:
    """Tells a trial of a point of its validation curve; returns whether it is to be pruned."""
    known = set(trial.study.get_trials(deepcopy=False)[trial.number].intermediate_values)

    def report(step: int, value: float) -> bool:
        if step not in known:
            known.add(step)
            trial.report(value, step)
        return trial.should_prune()

    return report


def short(value: Any) -> str:
    """A value of a setting with four significant digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
