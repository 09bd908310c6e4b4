"""Checkpoints: after every validation, once a minute, and when asked to stop; the best by the headline metric is kept.

Also holds what a record needs and a resumed run must not forget: the best and the latest metrics, the curves and the
clock. A record is written from what the last checkpoint holds, so that it can be written again.
"""

import math
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Callback, Trainer

from orthobench.common import signals
from orthobench.common.terminal import say
from orthobench.errors import Stopped, StorageError
from orthobench.recording import record as recorder
from orthobench.recording.attempts import Attempts, begun_earlier, joined
from orthobench.recording.curve import Curve
from orthobench.run.callbacks.finite import Finite
from orthobench.run.learner import Learner
from orthobench.run.trainer import validate_now

EVERY_S = 60.0  # between checkpoints that no validation asks for
KEPT = ("best", "latest", "best_step", "best_test", "validated", "finished", "peak_bytes")


class Saver(Callback):
    """Saves `last.ckpt` and `best.ckpt`.

    Attributes:
        best: metrics of the best validation so far; None before the first.
        latest: metrics of the latest validation.
        best_test: best value of the test metrics over the validations, where the paper selected on test.
        validated: step of the latest validation.
        recovered_from: what a run went on from when its newest checkpoint was damaged; None when none ever was.
        finished: when training ended; None before.
        peak_bytes: most memory in use up to the end of training; None before, or where it cannot be told.
        earlier: the attempts before this one, see `recording.attempts`.
        code: the commits that the run was trained with, the first one first; versions where it was not in a checkout.
        origin: the digest of the run's settings, and the plug-ins, YAML files and data that it is made of.
        stop_requested: the signal that asked to stop.
        restored: whether training has begun, from the start or from what a checkpoint held.
        resumed_at: the step of the checkpoint that a run goes on from; None from the start.

    Args:
        folder: where checkpoints go.
        curve: metrics.csv, of which every checkpoint holds a copy.
    """

    def __init__(self, folder: Path, curve: Curve) -> None:
        self.last_path, self.best_path = folder / "last.ckpt", folder / "best.ckpt"
        self.curve, self._saved_at = curve, time.monotonic()
        self.best: dict[str, float] | None = None
        self.latest: dict[str, float] = {}
        self.best_step: int | None = None
        self.best_test: dict[str, float] | None = None
        self.validated = -1
        self.finished: str | None = None
        self.peak_bytes: int | None = None
        self.recovered_from: str | None = None
        self.origin: dict[str, Any] = {}
        self.stop_requested: int | None = None
        made = recorder.code()
        self.code: list[str | None] = [made["git"] or f"version {made['version']}"]
        self.earlier: Attempts = []
        self._learner: Learner | None = None
        self._place: dict[str, str] = {}
        self._first, self._first_s = 0, 0.0
        self._earlier_s, self._started = 0.0, time.monotonic()
        self._random: list[torch.Tensor] | None = None
        self.restored = False
        self.resumed_at: int | None = None

    @property
    def wall_s(self) -> float:
        """Seconds of all attempts, up to the end of training."""
        return self._earlier_s if self._started is None else self._earlier_s + time.monotonic() - self._started

    def attempts(self) -> Attempts:
        """All attempts so far, this one last; only those that made steps."""
        if self._learner is None:
            return joined(self.earlier)
        engines = dict.fromkeys(name for name, _ in self._learner.model.engines())
        made_with = {"engine": ", ".join(engines), "torch": str(torch.__version__)}
        steps, seconds = self._learner.trainer.global_step - self._first, round(self.wall_s - self._first_s, 3)
        return joined([*self.earlier, {**self._place, **made_with, "steps": steps, "seconds": seconds}])

    def state_dict(self) -> dict[str, Any]:
        kept = {name: getattr(self, name) for name in (*KEPT, "recovered_from", "code", "origin")}
        kept["attempts"] = self.attempts()
        return {**kept, "wall_s": self.wall_s, "curve": self.curve.packed(), "random": self._random or _generators()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._random = state_dict["random"]
        self._earlier_s = self._first_s = state_dict["wall_s"]
        self.recovered_from = self.recovered_from or state_dict["recovered_from"]
        earlier, now = state_dict["code"], self.code[-1]
        changed = state_dict["finished"] is None and now != earlier[-1]
        self.code = [*earlier, now] if changed else earlier
        if changed:
            say(f"begun with the code of {earlier[-1]}, going on with {now}; the record names both")
        for name in KEPT:
            setattr(self, name, state_dict[name])
        self.earlier = state_dict.get("attempts") or []
        if self.finished is not None:
            self._started = None

    def on_train_start(self, trainer: Trainer, module: Learner) -> None:  # type: ignore[override]
        if self.resumed_at not in (None, trainer.global_step):
            loops = f"its loops are of step {trainer.global_step}"
            raise StorageError(f"{self.last_path} is of step {self.resumed_at}, and {loops}; delete it to start anew.")
        self.restored = True
        self._learner, self._first = module, trainer.global_step
        found = recorder.hardware(module.device)
        self._place = {"device": found["device"], "name": found["gpu"] or found["cpu"]}
        if self._first and not self.earlier:
            self.earlier = begun_earlier(self._first, self._earlier_s, len(self._random or ()) > 1)
        self._saved_at = time.monotonic()
        batches = trainer.global_step * module.duration.accumulate
        if batches and batches % module.duration.val_every == 0 and self.validated != trainer.global_step:
            validate_now(trainer)

    def on_train_batch_start(self, trainer: Trainer, module: Learner, batch: Any, index: int) -> None:  # type: ignore[override]
        if self._random is not None:
            torch.set_rng_state(self._random[0])
            if self._random[1:] and torch.cuda.is_available():
                torch.cuda.set_rng_state(self._random[1])
            self._random = None

    def on_train_batch_end(self, trainer: Trainer, module: Learner, outputs: Any, batch: Any, index: int) -> None:  # type: ignore[override]
        if not module.duration.ends_step(index):
            return  # a checkpoint holds no half-accumulated gradients
        stop = self._asked() is not None
        if (index + 1) % module.duration.val_every == 0 and not stop:
            return  # the validation that follows saves
        if stop or self.is_due():
            self.save(trainer)
        if stop:
            self._stop(trainer)

    def on_validation_batch_end(self, trainer: Trainer, module: Learner, *args: Any) -> None:  # type: ignore[override]
        if self._asked() is not None and trainer.global_step:
            self.save(trainer)
            self._stop(trainer)

    def on_test_batch_end(self, trainer: Trainer, module: Learner, *args: Any) -> None:  # type: ignore[override]
        if self._asked() is not None:
            self._stop(trainer)  # everything but the test has been saved

    def on_validation_end(self, trainer: Trainer, module: Learner) -> None:  # type: ignore[override]
        self.validated = trainer.global_step
        results, better = dict(module.results), _better(module)
        self.latest = results
        if self.best is None or better(results, self.best):
            self.best, self.best_step = results, trainer.global_step
            trainer.save_checkpoint(self.best_path)
        tests = {name: value for name, value in results.items() if name.startswith("test/")}
        if tests and module.task.select_on_test:
            old = self.best_test or tests
            lower = {f"test/{metric.name}" for metric in module.task.declared() if metric.direction == "lower"}
            self.best_test = {n: (min if n in lower else max)(old[n], v) for n, v in tests.items()}
        self.save(trainer)

    def is_due(self) -> bool:
        """Return True if the last checkpoint is so old that another is to be saved."""
        return time.monotonic() - self._saved_at > EVERY_S

    @property
    def restores(self) -> bool:
        """Return True if the next step begins with the random states of a checkpoint."""
        return self._random is not None

    def finish(self, trainer: Trainer) -> None:
        """Training has ended: stop the clock and save once more, unless an earlier attempt has."""
        if self.finished is None:
            self.finished = datetime.now(UTC).isoformat(timespec="seconds")
            self._earlier_s, self._started = self.wall_s, None
            self.peak_bytes = recorder.peak_bytes(trainer.lightning_module.device)
            self.save(trainer)

    def save(self, trainer: Trainer) -> None:
        """Write `last.ckpt`.

        Raises:
            DivergedError: there is nothing worth saving.
            StorageError: it cannot be written.
        """
        for callback in trainer.callbacks:  # type: ignore[attr-defined]
            if isinstance(callback, Finite):
                callback.check()
        trainer.save_checkpoint(self.last_path)
        self._saved_at = time.monotonic()

    def _asked(self) -> int | None:
        return self.stop_requested or signals.asked()

    def _stop(self, trainer: Trainer) -> None:
        name = signals.name(self._asked() or 0)
        raise Stopped(f"stopped by {name} at step {trainer.global_step}; the same command resumes the run.")


def _better(module: Learner) -> Callable[[dict[str, float], dict[str, float]], bool]:
    """By the headline metric; of equal ones, as small validation sets give, the lower loss is the better."""
    name, higher = f"val/{module.task.metric}", module.task.higher_is_better

    def rank(results: dict[str, float]) -> tuple[float, float]:
        value, loss = results[name], results.get("val/loss", math.inf)
        return (math.inf if math.isnan(value) else -value if higher else value), loss

    def better(new: dict[str, float], old: dict[str, float]) -> bool:
        if name not in old:  # an earlier version of the task reported the loss alone
            return new["val/loss"] < old["val/loss"]
        return rank(new) < rank(old)

    return better


def _generators() -> list[torch.Tensor]:
    """The state of torch's generator, and of that of the GPU where one is in use."""
    return [torch.get_rng_state(), *([torch.cuda.get_rng_state()] if torch.cuda.is_initialized() else [])]
