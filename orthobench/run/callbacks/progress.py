"""The progress bar: loss beside the trivial baseline, steps per second, time left; plain lines without a terminal."""

import shutil
import sys
import time
from typing import Any

from lightning.pytorch import Callback, Trainer
from tqdm import tqdm

from orthobench.common.terminal import is_terminal, say
from orthobench.run.learner import Learner

REFRESH_S = 0.5
WIDE = "{percentage:3.0f}%|{bar:24}| {n_fmt}/{total_fmt} [{elapsed}<{remaining}, {rate_fmt}{postfix}]"
NARROW = "{percentage:3.0f}% {n_fmt}/{total_fmt} [{remaining}{postfix}]"
WIDE_FROM = 110  # columns
LINES = 20  # of validations at most, or little more, without a terminal
GROWTH = 1.25  # of steps from line to line, where no end is known


class Progress(Callback):
    """Shows one run."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._shown = 0.0
        self._said, self._kept = 0, ""  # the step of the last line, and the line of a later validation

    def on_train_start(self, trainer: Trainer, module: Learner) -> None:  # type: ignore[override]
        if is_terminal(sys.stderr):
            total, first = module.duration.steps, trainer.global_step
            self._bar = tqdm(total=total, initial=first, unit="step", bar_format=NARROW, dynamic_ncols=True)
        else:
            self.on_train_batch_end = None  # type: ignore[assignment]  # not called at every step for nothing

    def on_train_batch_end(self, trainer: Trainer, module: Learner, *args: Any) -> None:  # type: ignore[override]
        if self._bar is None or time.monotonic() - self._shown < REFRESH_S:
            return
        self._shown = time.monotonic()
        self._draw(trainer, module)

    def on_validation_end(self, trainer: Trainer, module: Learner) -> None:  # type: ignore[override]
        if self._bar is None and trainer.global_step:
            step, total = trainer.global_step, module.duration.steps
            self._kept = f"step {step}/{total or '?'}  {_text(module)}"
            if _due(step, self._said, total):
                self._said = step
                self._say_kept()

    def teardown(self, trainer: Trainer, module: Learner, stage: str) -> None:  # type: ignore[override]
        if self._bar is not None and stage == "fit":
            self._draw(trainer, module)
            self._bar.close()
            self._bar = None
        self._say_kept()

    def on_exception(self, trainer: Trainer, module: Learner, exception: BaseException) -> None:  # type: ignore[override]
        if self._bar is not None:  # the line stays as it is, and what is said next begins below it
            self._bar.disable = True
            self._bar = None
            sys.stderr.write("\n")
        self._say_kept()

    def _say_kept(self) -> None:
        if self._kept:
            say(self._kept)
        self._kept = ""

    def _draw(self, trainer: Trainer, module: Learner) -> None:
        """The bar as it fits the terminal now: without what there is no room for."""
        columns = shutil.get_terminal_size().columns
        self._bar.bar_format = WIDE if columns >= WIDE_FROM else NARROW
        self._bar.n = trainer.global_step
        parts = _text(module).split(", ")
        self._bar.set_postfix_str(", ".join(parts), refresh=False)
        while parts and self._length() > columns:
            parts.pop()
            self._bar.set_postfix_str(", ".join(parts), refresh=False)
        self._bar.refresh()

    def _length(self) -> int:
        """Characters of the whole line, which tqdm would cut at the terminal's edge."""
        return len(self._bar.format_meter(**self._bar.format_dict | {"ncols": None}))


def _due(step: int, said: int, total: int | None) -> bool:
    """Return True if a validation has a line: the first of each of `LINES` equal parts of the run, and the last."""
    if not total:
        return step >= GROWTH * said
    return not said or step >= total or step * LINES // total > said * LINES // total


def _text(module: Learner) -> str:
    parts = [] if module.loss is None else [f"loss {float(module.loss):.4g}"]
    metric = module.task.metric
    if "loss" in module.task.baseline:
        parts.append(f"baseline {module.task.baseline['loss']:.4g}")
    if f"val/{metric}" in module.results:
        parts.append(f"val {metric} {module.results[f'val/{metric}']:.4g}")
    return ", ".join(parts)
