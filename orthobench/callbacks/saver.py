"""Checkpoints: after every validation, once a minute, and when asked to stop; the best by the headline metric is kept.

Also holds what a record needs and a resumed run must not forget: the best and the latest metrics.
"""

import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Callback, Trainer

from orthobench.errors import Stopped
from orthobench.learner import Learner

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2)


class Saver(Callback):
    """Saves `last.ckpt` and `best.ckpt`.

    Attributes:
        best: metrics of the best validation so far; null before the first.
        best_test: best value of the test metrics over the validations, where the paper selected on test.
        validated: step of the latest validation.

    Args:
        folder: where checkpoints go.
        every_s: seconds between checkpoints that no validation asks for.
    """

    def __init__(self, folder: Path, every_s: float = 60.0) -> None:
        self.last_path, self.best_path = folder / "last.ckpt", folder / "best.ckpt"
        self.every_s, self._saved_at = every_s, time.monotonic()
        self.best: dict[str, float] | None = None
        self.best_step: int | None = None
        self.best_test: dict[str, float] | None = None
        self.validated = -1
        self.stop_requested: int | None = None
        self._random: torch.Tensor | None = None
        self._handlers: dict[int, Any] = {}

    def state_dict(self) -> dict[str, Any]:
        names = ("best", "best_step", "best_test", "validated")
        return {**{name: getattr(self, name) for name in names}, "random": torch.get_rng_state()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._random = state_dict.pop("random")
        for name, value in state_dict.items():
            setattr(self, name, value)

    def on_train_start(self, trainer: Trainer, module: Learner) -> None:  # type: ignore[override]
        self._saved_at = time.monotonic()
        batches = trainer.global_step * module.duration.accumulate
        if batches and batches % module.duration.val_every == 0 and self.validated != trainer.global_step:
            trainer.validating = True  # stopped between a step and its validation: make up for it
            loop = trainer.fit_loop.epoch_loop.val_loop
            loop.restarting = False
            loop.run()
            trainer.training = True

    def on_train_batch_start(self, trainer: Trainer, module: Learner, batch: Any, index: int) -> None:  # type: ignore[override]
        if self._random is not None:
            torch.set_rng_state(self._random)
            self._random = None

    def on_train_batch_end(self, trainer: Trainer, module: Learner, outputs: Any, batch: Any, index: int) -> None:  # type: ignore[override]
        if (index + 1) % module.duration.accumulate:
            return  # a checkpoint holds no half-accumulated gradients
        if (index + 1) % module.duration.val_every == 0 and self.stop_requested is None:
            return  # the validation that follows saves
        if self.stop_requested is not None or time.monotonic() - self._saved_at > self.every_s:
            self.save(trainer)
        if self.stop_requested is not None:
            name = signal.Signals(self.stop_requested).name
            raise Stopped(f"stopped by {name} at step {trainer.global_step}; the same command resumes the run.")

    def on_validation_end(self, trainer: Trainer, module: Learner) -> None:  # type: ignore[override]
        if trainer.sanity_checking:
            return
        self.validated = trainer.global_step
        results, better = dict(module.results), _better(module)
        if self.best is None or better(results, self.best):
            self.best, self.best_step = results, trainer.global_step
            trainer.save_checkpoint(self.best_path)
        tests = {name: value for name, value in results.items() if name.startswith("test/")}
        if tests and module.task.select_on_test:
            old = self.best_test or tests
            lower = {name: name.endswith(("loss", "perplexity", "bpc")) for name in tests}
            self.best_test = {n: (min if lower[n] else max)(old[n], v) for n, v in tests.items()}
        self.save(trainer)

    def save(self, trainer: Trainer) -> None:
        """Write `last.ckpt`."""
        trainer.save_checkpoint(self.last_path)
        self._saved_at = time.monotonic()

    def __enter__(self) -> "Saver":
        def request(number: int, frame: Any) -> None:
            if self.stop_requested is not None:
                raise SystemExit(Stopped.exit_code)
            self.stop_requested = number

        for number in SIGNALS:
            try:
                self._handlers[number] = signal.signal(number, request)
            except ValueError:  # not the main thread: whoever owns it decides
                break
        return self

    def __exit__(self, *error: Any) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)


def _better(module: Learner) -> Callable[[dict[str, float], dict[str, float]], bool]:
    name, higher = f"val/{module.task.metric}", module.task.higher_is_better
    return lambda new, old: new[name] > old[name] if higher else new[name] < old[name]
