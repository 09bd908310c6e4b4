"""Run, from words to a record."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from orthobench.common import signals
from orthobench.common.registry import is_ours
from orthobench.common.terminal import say
from orthobench.config.settings import Settings
from orthobench.errors import ConfigError
from orthobench.models.build import fit_to_budget
from orthobench.models.surroundings import denormals_as_zero, torch_as_new
from orthobench.recording.claim import Claim
from orthobench.recording.digest import owner
from orthobench.recording.finished import check_identity, finished
from orthobench.run.attempt import Attempt
from orthobench.run.built import Built
from orthobench.run.continue_shorter import begin_from_shorter
from orthobench.run.kept_division import remarks_on_seen
from orthobench.run.memory import device_of, refuse_if_too_large
from orthobench.tasks.contract import tried_task, unnamed


class Run(Built):
    """Training that is built, and then trained, resumed or found done by `run`."""

    @classmethod
    def fitted(cls, checked: Settings) -> "Run":
        """The run of checked settings; a budget of parameters (`params=`) decides its hidden size here."""
        return cls(fit_to_budget(checked))

    def run(self, attempt: Callable[[Built, Path], Attempt] | None = None) -> dict[str, Any]:
        """Train it, or go on where it stopped, or find it done.

        Args:
            attempt: makes one attempt at the run in its folder, with `task` and `model` as they are. When None, it is
                `Attempt` with both made again: whatever has been done to them, a record is that of the settings.

        Returns:
            The record.

        Raises:
            OrthobenchError: whatever ended the run; what could be recorded has been.
        """
        with signals.watched(), torch_as_new(), denormals_as_zero():
            done = finished(self.settings)
            if done is None and attempt is None:
                self._forget_changes()
            return done or self._start(attempt or Attempt)

    def _forget_changes(self) -> None:
        made = {"task", "model", "duration", "first"} & vars(self).keys()
        if made:
            self.settings = replace(self.settings, task_made=None)
        for name in made:
            del vars(self)[name]

    def _start(self, attempt: Callable[[Built, Path], Attempt]) -> dict[str, Any]:
        folder, accelerator = self.settings.folder, self.settings.trainer.get("accelerator", "auto")
        if accelerator in ("gpu", "cuda") and not torch.cuda.is_available():
            raise ConfigError(
                f"trainer.accelerator={accelerator}: there is no GPU here; use trainer.accelerator=cpu or auto."
            )
        if self.task.no_training:
            raise ConfigError(f"{self.task.no_training}.")
        self._tell_budget()
        if self.settings.cap is not None:
            told = f"trainer.max_steps={self.settings.trainer['max_steps']} is longer than the recipe's max_epochs"
            say(f"{told}={self.settings.cap}, which is left out")
        self.task.check() if is_ours(type(self.task)) else tried_task(self.task)
        for remark in (*self.task.remarks(), *unnamed(self.task)):
            say(remark)
        for sentence in remarks_on_seen(self.settings, self.task, self.first) if self.first else ():
            say(sentence)
        self.model.to(device_of(accelerator))
        if not self.settings.run["force"]:
            refuse_if_too_large(self.model, self.task, accelerator)
        signals.check()
        with Claim(folder) as claim:
            if not claim.held:
                say(f"{self.run_id} is running elsewhere: {claim.owner}.")
                return {"status": "running", "run_id": self.run_id, "owner": claim.owner}
            check_identity(self.settings, folder / "config.yaml", owner(folder / "config.yaml"))
            done = finished(self.settings)  # it may have ended since we looked
            if done is None and attempt is Attempt:
                begin_from_shorter(self, folder)
            return done or attempt(self, folder).execute()

    def _tell_budget(self) -> None:
        budget = self.settings.run.get("params")
        if budget:
            total = self.parameters["total"]
            far = ", more than 1 % off" if abs(total - budget) > 0.01 * budget else ""
            size = self.settings.model["hidden_size"]
            say(f"params={budget:,}: hidden size {size} has {total:,} parameters{far}")
