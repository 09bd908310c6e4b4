"""One run, start to finish: check -> build -> fit -> test -> record."""

import errno
import logging
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import torch
import yaml

from orthobench import signals
from orthobench.config.check import Settings, settings
from orthobench.errors import (
    ConfigError,
    DivergedError,
    OrthobenchError,
    Stopped,
    StorageError,
)
from orthobench.models.base import Network
from orthobench.recording import record as recorder
from orthobench.recording.checkpoint import SafeCheckpointIO, digest_of, newest, of_step, previous
from orthobench.recording.claim import Claim
from orthobench.recording.curve import Curve, thinned
from orthobench.recording.digest import final, owned, owner, write_sealed
from orthobench.recording.files import sweep_up, write_bytes
from orthobench.recording.loggers import close, make_logger
from orthobench.run import build as builder
from orthobench.run.callbacks.baseline import BaselineCrossing
from orthobench.run.callbacks.diagnostics import diagnostics
from orthobench.run.callbacks.finite import Finite
from orthobench.run.callbacks.orthogonality import Orthogonality
from orthobench.run.callbacks.progress import Progress
from orthobench.run.callbacks.saver import Saver
from orthobench.run.callbacks.training import TrainingLog
from orthobench.run.callbacks.unused_hooks import NoProfiler, leave_out_idle
from orthobench.run.duration import Duration, duration, evaluation_limits
from orthobench.run.learner import Learner
from orthobench.run.memory import device_of, exhausted, refuse_if_too_large
from orthobench.tasks.base import Task
from orthobench.terminal import complain, duration_text, say

REASONS = {DivergedError: "diverged", Stopped: "stopped"}
POINTS = 500


@dataclass
class Experiment:
    """One run, built but not started.

    Attributes:
        settings: checked settings.
    """

    settings: Settings

    @cached_property
    def task(self) -> Task:
        """The task; no data is read before it is needed."""
        return builder.build_task(self.settings)

    @cached_property
    def model(self) -> Network:
        """The model with its initial weights."""
        return builder.build_model(self.settings, self.task)

    @property
    def parameters(self) -> dict[str, int]:
        """Free parameters, `total` and `recurrent`."""
        return self.model.parameter_counts()

    @property
    def run_id(self) -> str:
        """The name of the run's folder."""
        return self.settings.run_id

    @cached_property
    def duration(self) -> Duration:
        """Lengths in steps."""
        return duration(self.settings.trainer, self.task)

    def run(self) -> dict[str, Any]:
        """Run it, or resume it, or find it done.

        Returns:
            The record.

        Raises:
            OrthobenchError: whatever ended the run; what could be recorded has been.
        """
        return run(self)


def experiment(overrides: list[str] | tuple[str, ...], folders: tuple[Path, ...] = ()) -> Experiment:
    """Build one run from `key=value` words.

    Raises:
        ConfigError: see `settings.settings`.
    """
    return from_settings(settings(overrides, folders))


def from_settings(checked: Settings) -> Experiment:
    """Build one run from checked settings; `params=` decides the hidden size here."""
    return Experiment(builder.fit_to_budget(checked))


def run(exp: Experiment, attempt: "Callable[[Experiment, Path], Attempt] | None" = None) -> dict[str, Any]:
    """See `Experiment.run`; `attempt` makes one go at it."""
    with signals.watched():
        return _finished(exp) or _run(exp, attempt or Attempt)


def _finished(exp: Experiment) -> dict[str, Any] | None:
    """The final record of a run, if there is one."""
    path = exp.settings.folder / "record.json"
    found = final(path)
    if found is not None:
        _check_identity(exp, found.get("identity"))
        stale = "" if found["code"].get("git") == recorder.code()["git"] else " (stale: made by other code)"
        say(f"{exp.run_id} is {found['status']} already{stale}; {path}")
    return found


def _run(exp: Experiment, attempt: "Callable[[Experiment, Path], Attempt]") -> dict[str, Any]:
    folder = exp.settings.folder
    _check_device(exp)
    _warn_about_budget(exp)
    exp.task.check()
    accelerator = exp.settings.trainer.get("accelerator", "auto")
    exp.model.to(device_of(accelerator))
    if not exp.settings.run["force"]:
        refuse_if_too_large(exp.model, exp.task, accelerator)
    signals.check()
    with Claim(folder) as claim:
        if not claim.held:
            say(f"{exp.run_id} is running elsewhere: {claim.owner}.")
            return {"status": "running", "run_id": exp.run_id, "owner": claim.owner}
        _check_identity(exp, owner(folder / "config.yaml"))
        return _finished(exp) or attempt(exp, folder).run()  # it may have ended since we looked


class Attempt:
    """One go at a run: from its latest checkpoint, or from the start, to its end or to what stops it."""

    learner_class: ClassVar[type[Learner]] = Learner

    def __init__(self, exp: Experiment, folder: Path) -> None:
        self.exp, self.folder = exp, folder
        self.provenance: dict[str, Any] = {}
        _quieten()
        sweep_up(folder)
        text = owned(yaml.safe_dump(exp.settings.as_dict(), sort_keys=False), exp.settings.digest)
        write_bytes(folder / "config.yaml", text.encode())
        self.curve = Curve(folder / "metrics.csv")
        self.saver = Saver(folder / "checkpoints", self.curve)
        self.logger: Any = False
        every = exp.settings.trainer.get("log_every_n_steps", 50)
        common = (self.curve, exp.duration, every)
        self.training, self.orthogonality = TrainingLog(*common), Orthogonality(*common)
        self.crossing, self.finite = BaselineCrossing(), Finite(every)
        watchers = [
            self.finite,
            self.training,
            self.orthogonality,
            self.crossing,
            *diagnostics(exp.settings.diagnostics, exp.model, *common),
        ]
        self.callbacks = [*watchers, Progress(), self.saver]
        optimizer = builder.build_optimizer(exp.settings, exp.model)
        schedule = builder.build_schedule(exp.settings)
        self.learner = self.learner_class(exp.model, exp.task, optimizer, schedule, exp.duration)
        leave_out_idle(self.learner, *self.callbacks)

    def run(self) -> dict[str, Any]:
        """Fit, test and record."""
        try:
            self._announce()
            trainer = self._fit()
            record = self._record("done", trainer, metrics=self._test(trainer))
        except Exception as error:
            translated = _translate(error, self)
            self._record_failure(translated)
            if translated is error:
                raise
            raise translated from error
        finally:
            close(self.logger)
            self.exp.model.cpu()
        self._close(record)
        return record

    def _fit(self) -> Any:
        from lightning.fabric.plugins.environments.lightning import LightningEnvironment
        from lightning.pytorch import Trainer

        alone = LightningEnvironment()  # not Slurm's: a run is one process, whatever task of a job it is
        alone.set_global_rank(0)
        self.logger = make_logger(self.exp.settings)
        torch.manual_seed(self.exp.settings.run["seed"])
        task, length = self.exp.task, self.exp.duration
        resume, step, curve = self._resume()
        self.curve.restore(curve)
        signals.check()
        task.start(step * length.accumulate, length.epoch_batches)
        given = dict(self.exp.settings.trainer)
        for key in ("max_epochs", "max_steps", "val_check_interval", "check_val_every_n_epoch", "limit_train_batches"):
            given.pop(key, None)
        own = {"accelerator": device_of(given.get("accelerator", "auto")).type, "devices": 1}
        trainer = Trainer(
            **{
                "gradient_clip_algorithm": None,
                "profiler": NoProfiler(),
                **given,
                **own,
                **evaluation_limits(given, task),
            },
            max_steps=length.steps or -1,
            max_epochs=-1,
            val_check_interval=length.val_every,
            check_val_every_n_epoch=None,
            num_sanity_val_steps=0,
            logger=self.logger,
            callbacks=self.callbacks,
            plugins=[SafeCheckpointIO(), alone],
            default_root_dir=str(self.folder),
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            use_distributed_sampler=False,
        )
        trainer._signal_connector.register_signal_handlers = lambda: None  # ours alone: Lightning's end a run unsaved
        trainer.fit(self.learner, datamodule=task, ckpt_path=resume, weights_only=True)
        self.training.pause(trainer.global_step)
        self.finite.check()
        if self.saver.validated != trainer.global_step:
            trainer.validate(self.learner, datamodule=task, verbose=False)
            self.training.pause(trainer.global_step)
        self.saver.finish(trainer)
        return trainer

    def _resume(self) -> tuple[Path | None, int, torch.Tensor | None]:
        """The checkpoint to go on from, its step and its curves; the start where nothing whole is left."""
        last = self.saver.last_path
        resume = newest(last)
        if resume != last and (last.exists() or previous(last).exists()):
            self.saver.recovered_from = "the start" if resume is None else resume.name
            say(f"{last} is damaged or missing; going on from {self.saver.recovered_from}.")
        if resume is None:
            return None, 0, None
        state = SafeCheckpointIO().load_checkpoint(resume)
        step, saved = state["global_step"], state["callbacks"]["Saver"]
        if saved["best_step"] is not None and of_step(saved["best_step"], self.saver.best_path, last) is None:
            self.saver.recovered_from = "the start"
            say(f"{self.saver.best_path} is damaged; going on from the start, or its numbers would be lost.")
            return None, 0, None
        say(f"resuming at step {step}")
        return resume, step, saved["curve"]

    def _test(self, trainer: Any) -> dict[str, Any]:
        """The metrics of the last weights, and of the best by validation."""
        learner, task = self.learner, self.exp.task
        learner.results = dict(self.saver.latest)
        last = self._score(trainer)
        best = last
        if self.saver.best_step not in (None, trainer.global_step):
            path = of_step(self.saver.best_step, self.saver.best_path, self.saver.last_path)
            if path is None:
                raise StorageError(f"{self.saver.best_path} is damaged; the same command starts again.")
            kept = {key: value.clone() for key, value in learner.state_dict().items()}
            learner.load_state_dict(SafeCheckpointIO().load_checkpoint(path)["state_dict"])
            learner.results = dict(self.saver.best or {})
            best = self._score(trainer)
            learner.load_state_dict(kept)
        best_test = self.saver.best_test if task.select_on_test else None
        return {"best_val": best, "last": last, "best_test": best_test}

    def _score(self, trainer: Any) -> dict[str, float]:
        trainer.test(self.learner, datamodule=self.exp.task, verbose=False)
        return dict(sorted(self.learner.results.items()))

    def _record(
        self, status: str, trainer: Any, metrics: dict[str, Any] | None, reason: str | None = None
    ) -> dict[str, Any]:
        exp = self.exp
        step = 0 if trainer is None else trainer.global_step
        train_s = self.training.train_s
        curves = {name: self.curve.of(name) for name in ("train/loss", f"val/{exp.task.metric}", "orthogonality")}
        record = {
            "schema": 2,
            "status": status,
            "reason": reason,
            "run_id": exp.run_id,
            "identity": exp.settings.digest,
            "model": exp.settings.model["name"],
            "task": exp.settings.task["name"],
            "T": exp.task.T,
            "seed": exp.settings.run["seed"],
            "steps": step,
            "epochs": exp.duration.epochs(step),
            "parameters": exp.parameters,
            "split": exp.task.split_name,
            "baseline": exp.task.baseline,
            "baseline_reason": exp.task.baseline_reason,
            "metrics": metrics or {"best_val": self.saver.best, "last": None, "best_test": None},
            "best_step": self.saver.best_step,
            "recovered_from": self.saver.recovered_from,
            "crossed": self.crossing.steps,
            "checkpoint": {"last": digest_of(self.saver.last_path), "best": digest_of(self.saver.best_path)},
            "diverged": {"step": self.finite.step, "last_loss": self.finite.last_loss} if self.finite.step else None,
            "orthogonality": {name: getattr(self.orthogonality, name) for name in ("max", "last", "lost")},
            "config": exp.settings.as_dict(),
            "code": recorder.code() | {"trained_with": self.saver.code},
            "env": recorder.environment(),
            "hardware": recorder.hardware(self.learner.device)
            | {"peak_bytes": self.saver.peak_bytes or recorder.peak_bytes(self.learner.device)},
            **self.provenance,
            "time": {
                "finished": self.saver.finished or datetime.now(UTC).isoformat(timespec="seconds"),
                "wall_s": round(self.saver.wall_s, 3),
                "train_s": round(train_s, 3),
                "steps_per_s": round(step / train_s, 3) if train_s else None,
            },
            "engine": [{"engine": name, "reason": why} for name, why in exp.model.engines()],
            "curve": {name: thinned(points, POINTS) for name, points in curves.items() if points},
        }
        return write_sealed(self.folder / "record.json", record)

    def _record_failure(self, error: Exception) -> None:
        status = REASONS.get(type(error), "failed")
        trainer = self.learner._trainer
        try:
            self._record(status, trainer, metrics=None, reason=str(error) or type(error).__name__)
        except StorageError as second:
            if not isinstance(error, StorageError):
                complain(f"orthobench: {error}")
                raise second from error

    def _announce(self) -> None:
        exp = self.exp
        steps = f"{exp.duration.steps:,} steps" if exp.duration.steps else "until the time limit"
        counts = exp.parameters
        length = f", T={exp.task.T}" if exp.task.T else ""
        engine, why = exp.model.engines()[0]
        model = f"{exp.settings.model['name']} (n={exp.settings.model['hidden_size']}, {counts['total']:,} parameters)"
        say(f"{model} on {exp.settings.task['name']}{length}, seed {exp.settings.run['seed']}")
        say(f"{steps} of {exp.task.batch_size} sequences; engine {engine}: {why}")
        say(f"folder {self.folder}")

    def _close(self, record: dict[str, Any]) -> None:
        metric = self.exp.task.metric
        value, baseline = record["metrics"]["best_val"][f"test/{metric}"], self.exp.task.baseline.get(metric)
        beside = "" if baseline is None else f" (baseline {baseline:.4g})"
        spent = duration_text(record["time"]["train_s"])
        where = self.folder / "record.json"
        say(f"{self.exp.run_id}: test {metric} {value:.4g}{beside} after {record['steps']:,} steps in {spent}; {where}")


def _translate(error: Exception, attempt: Attempt) -> Exception:
    """What a library raised, as one of our errors where a user can act on it."""
    text, exp = str(error), attempt.exp
    refused = isinstance(error, torch.OutOfMemoryError | MemoryError) or getattr(error, "errno", None) == errno.ENOMEM
    if refused or "can't allocate memory" in text or "bad_alloc" in text:
        traceback.clear_frames(error.__traceback__)  # they hold what there was no room for
        return exhausted(attempt.learner)
    if isinstance(error, OSError) and not isinstance(error, OrthobenchError):
        return StorageError(f"{error.filename or exp.settings.folder}: {error.strerror or text}.")
    return error


def _check_identity(exp: Experiment, digest: str | None) -> None:
    """Refuse a folder that belongs to other settings whose digest begins alike; a damaged digest is no evidence."""
    other = digest is not None and digest[:10] == exp.settings.digest[:10] and digest != exp.settings.digest
    if other and len(digest or "") == 64:
        raise ConfigError(f"{exp.settings.folder} holds another run of the same short name; use another runs_root=.")


def _check_device(exp: Experiment) -> None:
    accelerator = exp.settings.trainer.get("accelerator", "auto")
    if accelerator in ("gpu", "cuda") and not torch.cuda.is_available():
        raise ConfigError(
            f"trainer.accelerator={accelerator}: there is no GPU here; use trainer.accelerator=cpu or auto."
        )


def _warn_about_budget(exp: Experiment) -> None:
    budget = exp.settings.run.get("params")
    if budget:
        total = exp.parameters["total"]
        far = ", more than 1 % off" if abs(total - budget) > 0.01 * budget else ""
        say(f"params={budget:,}: hidden size {exp.settings.model['hidden_size']} has {total:,} parameters{far}")


def _quieten() -> None:
    """Lightning's advice on loaders, devices and logging, which does not apply to a run of ours."""
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module=r"lightning\..*")
    warnings.filterwarnings("ignore", message=r".*LeafSpec.*")
    if torch.get_num_threads() > 1 and not torch.cuda.is_available():
        torch.set_num_threads(1)
