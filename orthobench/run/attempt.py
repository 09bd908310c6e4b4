"""Attempt at a run: from its latest checkpoint, or from the start, to its end or to what stops it."""

import errno
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import torch

from orthobench.common import signals
from orthobench.common.paths import absolute
from orthobench.common.terminal import complain, duration_text, say
from orthobench.errors import DivergedError, OrthobenchError, Stopped, StorageError, is_exhaustion, of_system
from orthobench.models.build import build_optimizer, build_schedule
from orthobench.recording import record as recorder
from orthobench.recording import run_folder
from orthobench.recording.checkpoint import digest_of, load_own, newest, of_step, previous
from orthobench.recording.checkpoint_shape import differing, misfit
from orthobench.recording.curve import POINTS, SEAL, Curve, thinned
from orthobench.recording.digest import write_sealed
from orthobench.recording.files import sweep_up
from orthobench.recording.loggers import close, conclude, go_on, make_logger
from orthobench.recording.sources import refuse_changed, sources
from orthobench.run.built import Built
from orthobench.run.callbacks.baseline import BaselineCrossing
from orthobench.run.callbacks.diagnostics import diagnostics
from orthobench.run.callbacks.finite import Finite
from orthobench.run.callbacks.orthogonality import Orthogonality
from orthobench.run.callbacks.progress import Progress
from orthobench.run.callbacks.saver import Saver
from orthobench.run.callbacks.stopping import Stopping
from orthobench.run.callbacks.training import TrainingLog
from orthobench.run.evaluate import at_lengths
from orthobench.run.learner import Learner
from orthobench.run.memory import exhausted, keep_freed_memory
from orthobench.run.task_data import TaskData
from orthobench.run.trainer import (
    end_again,
    leave_out_unused_hooks,
    make_trainer,
    quieten,
    refuse_half_on_a_cpu,
)

STATUSES = {DivergedError: "diverged", Stopped: "stopped"}


class Attempt:
    """Attempt at a run: from its latest checkpoint, or from the start, to its end or to what stops it."""

    learner_class: ClassVar[type[Learner]] = Learner

    def __init__(self, run: Built, folder: Path) -> None:
        refuse_half_on_a_cpu(run.settings.trainer)
        self.run, self.folder = run, folder
        self.provenance: dict[str, Any] = {}
        self.lengths: dict[str, dict[str, float]] = {}
        self.restored_from: Path | None = None
        quieten()
        keep_freed_memory()
        sweep_up(folder)
        run_folder.write(run.settings)
        self.curve = Curve(folder / "metrics.csv")
        self.saver = Saver(folder / "checkpoints", self.curve)
        self.saver.origin = {"identity": run.settings.digest, "sources": sources(run.settings, run.task.files_read())}
        self.logger: Any = False
        every = run.settings.trainer.get("log_every_n_steps", 50)
        common = (self.curve, run.duration, every)
        self.training, self.orthogonality = TrainingLog(*common), Orthogonality(*common)
        self.crossing, self.finite = BaselineCrossing(), Finite(every)
        stopping = run.settings.stopping
        self.stopping = Stopping(**stopping, least=run.duration.least) if stopping["metric"] else None
        watchers = [
            self.finite,
            self.training,
            self.orthogonality,
            self.crossing,
            *([self.stopping] if self.stopping else []),
            *diagnostics(run.settings.diagnostics, run.model, *common),
        ]
        self.callbacks = [*watchers, Progress(), self.saver]
        optimizer = build_optimizer(run.settings, run.model)
        schedule = build_schedule(run.settings)
        steps = run.duration.steps
        if steps and (remark := schedule.remark(run.duration.epochs(steps), steps)):
            say(remark)
        self.learner = self.learner_class(run.model, run.task, optimizer, schedule, run.duration)
        leave_out_unused_hooks(self.learner, *self.callbacks)

    def execute(self) -> dict[str, Any]:
        """Fit, test and record."""
        try:
            self.announce()
            trainer = self._fit()
            record = self.record("done", trainer, metrics=self._test(trainer))
            conclude(self.logger, self.run.settings, record)
        except Exception as error:
            translated = _translate(error, self)
            self._record_failure(translated)
            if translated is error:
                raise
            raise translated from error
        finally:
            close(self.logger)
            self.run.model.cpu()
        self._close(record)
        return record

    def _fit(self) -> Any:
        self.logger = make_logger(self.run.settings)
        torch.manual_seed(self.run.settings.run["seed"])
        task, length = self.run.task, self.run.duration
        resume, state = self._resume()
        step = state["global_step"] if state else 0
        told = self.curve.rows()
        self.curve.restore(state["callbacks"]["Saver"]["curve"] if state else None)
        go_on(self.logger, told, self.curve.rows())
        signals.check()
        data = TaskData(task, step * length.accumulate, length.epoch_batches)
        trainer = make_trainer(self.run.settings.trainer, task, length, self.callbacks, self.logger, str(self.folder))
        if resume is not None:
            self._refuse_other_states(resume, state, trainer)
            if step == length.steps and state["callbacks"]["Saver"]["finished"] is None:
                end_again(trainer, step, state)
        trainer.fit(self.learner, datamodule=data, ckpt_path=resume, weights_only=True)
        self.saver.restored = True
        self.training.pause(trainer.global_step)
        self.finite.check()
        if self.saver.validated != trainer.global_step:
            trainer.validate(self.learner, datamodule=data, verbose=False)
            self.training.pause(trainer.global_step)
        self.saver.finish(trainer)
        return trainer

    def _resume(self) -> tuple[Path | None, dict[str, Any]]:
        """The checkpoint to go on from and what is in it; None and nothing, for the start, where none is whole."""
        last = self.saver.last_path
        resume = newest(last)
        if resume != last and (last.exists() or previous(last).exists()):
            self.saver.recovered_from = "the start" if resume is None else resume.name
            say(f"{last} is damaged or missing; going on from {self.saver.recovered_from}.")
        if resume is None:
            return None, {}
        identity = self.run.settings.digest
        state = load_own(resume, identity)
        reason = misfit(state, self.learner, self.learner.optimizer)
        if reason is not None:
            raise StorageError(f"{resume} does not fit this run: {reason}; delete it to start this run anew.")
        step, saved = state["global_step"], state["callbacks"]["Saver"]
        refuse_changed((saved.get("origin") or {}).get("sources"), self.run.settings, "begun")
        if saved["best_step"] is not None and of_step(saved["best_step"], identity, self.saver.best_path, last) is None:
            self.saver.recovered_from = "the start"
            say(f"{self.saver.best_path} is damaged; going on from the start, or its numbers would be lost.")
            return None, {}
        say(f"resuming at step {step}")
        return resume, state

    def _refuse_other_states(self, resume: Path, state: dict[str, Any], trainer: Any) -> None:
        """Refuse a checkpoint whose loops or callbacks have other kinds of values than this run's."""
        callbacks = {callback.state_key: callback.state_dict() for callback in self.callbacks if callback != self.saver}
        own = {"loops": {"fit_loop": trainer.fit_loop.state_dict()}, "callbacks": callbacks}
        reason = differing({key: state[key] for key in own}, own, "its state")
        if reason is not None:
            raise StorageError(f"{resume} does not fit this run: {reason}; delete it to start this run anew.")
        self.restored_from, self.saver.resumed_at = resume, state["global_step"]

    def _test(self, trainer: Any) -> dict[str, Any]:
        """The metrics of the last weights, and of the best by validation; of these the `lengths` too."""
        learner, task = self.learner, self.run.task
        learner.results = dict(self.saver.latest)
        last = self._score(trainer)
        self.finite.look_at(last, task.metric, trainer.global_step)
        best, kept = last, None
        if self.saver.best_step not in (None, trainer.global_step):
            identity = self.run.settings.digest
            path = of_step(self.saver.best_step, identity, self.saver.best_path, self.saver.last_path)
            if path is None:
                raise StorageError(f"{self.saver.best_path} is damaged; the same command starts again.")
            kept = {key: value.clone() for key, value in learner.state_dict().items()}
            learner.load_state_dict(load_own(path, identity)["state_dict"])
            learner.results = dict(self.saver.best or {})
            best = self._score(trainer)
        self.lengths = at_lengths(trainer, learner)
        if kept is not None:
            learner.load_state_dict(kept)
        best_test = self.saver.best_test if task.select_on_test else None
        return {"best_val": best, "last": last, "best_test": best_test}

    def _score(self, trainer: Any) -> dict[str, float]:
        trainer.test(self.learner, datamodule=TaskData(self.run.task), verbose=False)
        return dict(sorted(self.learner.results.items()))

    def record(
        self, status: str, trainer: Any, metrics: dict[str, Any] | None, reason: str | None = None
    ) -> dict[str, Any]:
        run = self.run
        step = 0 if trainer is None else trainer.global_step
        train_s = self.training.spent_s
        found = self.curve.points()
        curves = {name: found.get(name) for name in ("train/loss", f"val/{run.task.metric}", "orthogonality")}
        record = {
            "schema": 2,
            "status": status,
            "reason": reason,
            "run_id": run.run_id,
            "identity": run.settings.digest,
            "model": run.settings.model["name"],
            "task": run.settings.task["name"],
            "T": run.task.T,
            "seed": run.settings.run["seed"],
            "steps": step,
            "epochs": run.duration.epochs(step),
            "parameters": run.parameters,
            "budget": run.budget,
            "split": run.task.split_name,
            **self._division(),
            "baseline": run.task.baseline,
            "baseline_reason": run.task.baseline_reason,
            "metrics": metrics or {"best_val": self.saver.best, "last": None, "best_test": None},
            "best_step": self.saver.best_step,
            "recovered_from": self.saver.recovered_from,
            "crossed": self.crossing.steps | (self.stopping.crossed if self.stopping else {}),
            "checkpoint": {"last": digest_of(self.saver.last_path), "best": digest_of(self.saver.best_path)},
            "diverged": {"step": self.finite.step, "last_loss": self.finite.last_loss} if self.finite.step else None,
            "orthogonality": {name: getattr(self.orthogonality, name) for name in ("max", "last", "lost")},
            "config": run.settings.as_kept(),
            "sources": self.saver.origin["sources"],
            "code": recorder.code() | {"trained_with": self.saver.code},
            "env": recorder.environment(),
            "hardware": recorder.hardware(self.learner.device)
            | {"peak_bytes": self.saver.peak_bytes or recorder.peak_bytes(self.learner.device)},
            **self.provenance,
            **({"lengths": self.lengths} if self.lengths else {}),
            "time": {
                "finished": self.saver.finished or datetime.now(UTC).isoformat(timespec="seconds"),
                "wall_s": round(self.saver.wall_s, 3),
                "train_s": round(train_s, 3),
                "steps_per_s": round(step / train_s, 3) if train_s else None,
            },
            "engine": [{"engine": name, "reason": why} for name, why in run.model.engines()],
            "attempts": self.saver.attempts(),
            SEAL: self.curve.digest(),
            "curve": {name: thinned(points, POINTS) for name, points in curves.items() if points},
        }
        return write_sealed(self.folder / "record.json", record)

    def _division(self) -> dict[str, Any]:
        """Whose division the data have, where it is that of the run `init_from=`."""
        seed, first = self.run.task.division_seed, self.run.first
        if first is None or seed == self.run.task.seed:
            return {}
        return {"division": {"seed": seed, "run": first.run_id}}

    def _record_failure(self, error: Exception) -> None:
        status = STATUSES.get(type(error), "failed")
        trainer = self.learner._trainer
        try:
            self.record(status, trainer, metrics=None, reason=str(error) or type(error).__name__)
        except StorageError as second:
            if not isinstance(error, StorageError):
                complain(f"orthobench: {error}")
                raise second from error

    def announce(self) -> None:
        run = self.run
        steps = f"{run.duration.steps:,} steps" if run.duration.steps else "until the time limit"
        counts = run.parameters
        length = f", T={run.task.T}" if run.task.T else ""
        engine, why = run.model.engines()[0]
        model = f"{run.settings.model['name']} (n={run.settings.model['hidden_size']}, {counts['total']:,} parameters)"
        say(f"{model} on {run.settings.task['name']}{length}, seed {run.settings.run['seed']}")
        say(f"{steps} of {run.task.batch_size} sequences; engine {engine}: {why}")
        say(f"folder {self.folder}")

    def _close(self, record: dict[str, Any]) -> None:
        metric = self.run.task.metric
        value, baseline = record["metrics"]["best_val"][f"test/{metric}"], self.run.task.baseline.get(metric)
        beside = "" if baseline is None else f" (baseline {baseline:.4g})"
        score = "not finite" if value is None else f"{value:.4g}"
        spent = duration_text(record["time"]["train_s"])
        where, lost = self.folder / "record.json", record["orthogonality"]["lost"]
        if lost is not None:
            say(
                f"a constrained matrix has left its set, as was first seen at step {lost:,}: its model is another one "
                "from then on; a lower optimizer.lr_recurrent may keep it there."
            )
        say(f"{self.run.run_id}: test {metric} {score}{beside} after {record['steps']:,} steps in {spent}; {where}")


def _translate(error: Exception, attempt: Attempt) -> Exception:
    """Turn what a library raised into one of our errors, if a user can act on it."""
    text, run = str(error), attempt.run
    if is_exhaustion(error):
        traceback.clear_frames(error.__traceback__)  # they hold what there was no room for
        return exhausted(run.model, run.task, attempt.learner.device)
    cause: BaseException | None = error
    while cause is not None:  # of a process that prepares batches: what PyTorch makes of it says nothing
        if isinstance(cause, OSError) and cause.errno in (errno.EMFILE, errno.ENFILE):
            return of_system(cause)
        cause = cause.__context__
    lost = isinstance(error, ConnectionError | EOFError) or "DataLoader worker" in text
    if lost and run.task.num_workers:
        return Stopped(
            "a process that prepares batches was killed; the same command resumes the run, and task.num_workers=0 does "
            "without such processes."
        )
    if isinstance(error, OSError) and not isinstance(error, OrthobenchError):
        place, full = str(error.filename or attempt.folder), error.errno in (errno.ENOSPC, errno.EDQUOT)
        own = full or Path(absolute(place)).is_relative_to(absolute(str(attempt.folder)))
        if own:
            return StorageError(f"{place}: {error.strerror or text}; make room, or set runs_root= to another folder.")
        return StorageError(f"{place}: {error.strerror or text}; put that file there, or make it readable.")
    if attempt.restored_from is not None and not attempt.saver.restored and not isinstance(error, OrthobenchError):
        kind = type(error).__name__
        return StorageError(
            f"{attempt.restored_from} cannot be read by this version ({kind}: {' '.join(text.split())}); delete it to "
            "start this run anew."
        )
    return error
