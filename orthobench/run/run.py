"""One run, from words to a record."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from orthobench import signals
from orthobench.config.many import settings
from orthobench.config.settings import Settings
from orthobench.errors import ConfigError, StorageError
from orthobench.models.build import fit_to_budget
from orthobench.recording.claim import Claim
from orthobench.recording.digest import final, owner
from orthobench.recording.record import other_code
from orthobench.recording.sources import changed_yaml, refuse_changed
from orthobench.run.attempt import Attempt
from orthobench.run.built import Built
from orthobench.run.memory import device_of, refuse_if_too_large
from orthobench.terminal import say


class Run(Built):
    """One training: built, and then trained, resumed or found done by `run`."""

    @classmethod
    def of(cls, words: list[str] | tuple[str, ...], folders: tuple[Path, ...] = ()) -> "Run":
        """The run that `key=value` words ask for.

        Args:
            words: overrides, as on the command line.
            folders: further configuration folders (`--config-dir`).

        Raises:
            ConfigError: an unknown key, a wrong type or a value out of range.
        """
        return cls.fitted(settings(words, folders))

    @classmethod
    def fitted(cls, checked: Settings) -> "Run":
        """The run of checked settings; a budget of parameters (`params=`) decides its hidden size here."""
        return cls(fit_to_budget(checked))

    def run(self, attempt: Callable[[Built, Path], Attempt] | None = None) -> dict[str, Any]:
        """Train it, or go on where it stopped, or find it done.

        Args:
            attempt: makes one attempt at the run in its folder; `Attempt` when null.

        Returns:
            The record.

        Raises:
            OrthobenchError: whatever ended the run; what could be recorded has been.
        """
        with signals.watched():
            return self._finished() or self._start(attempt or Attempt)

    def _finished(self) -> dict[str, Any] | None:
        """The final record of the run, if there is one."""
        path = self.settings.folder / "record.json"
        found = final(path)
        if found is not None:
            self._check_identity(path, found.get("identity"), found["run_id"])
            refuse_changed(found.get("sources"), self.settings)
            other, files = other_code(found), changed_yaml(found.get("sources"), self.settings)
            reasons = [f"made by other code, {other}"] if other else []
            reasons += [f"{name} has changed, but none of its settings" for name in files]
            stale = f" (stale: {'; '.join(reasons)})" if reasons else ""
            say(f"{self.run_id} is {found['status']} already{stale}; {path}")
        return found

    def _start(self, attempt: Callable[[Built, Path], Attempt]) -> dict[str, Any]:
        folder, accelerator = self.settings.folder, self.settings.trainer.get("accelerator", "auto")
        if accelerator in ("gpu", "cuda") and not torch.cuda.is_available():
            raise ConfigError(
                f"trainer.accelerator={accelerator}: there is no GPU here; use trainer.accelerator=cpu or auto."
            )
        self._tell_budget()
        self.task.check()
        self.model.to(device_of(accelerator))
        if not self.settings.run["force"]:
            refuse_if_too_large(self.model, self.task, accelerator)
        signals.check()
        with Claim(folder) as claim:
            if not claim.held:
                say(f"{self.run_id} is running elsewhere: {claim.owner}.")
                return {"status": "running", "run_id": self.run_id, "owner": claim.owner}
            self._check_identity(folder / "config.yaml", owner(folder / "config.yaml"))
            return self._finished() or attempt(self, folder).execute()  # it may have ended since we looked

    def _check_identity(self, path: Path, digest: str | None, name: str | None = None) -> None:
        """Refuse a file of other settings by its whole digest, or, where it has none, by the run's name."""
        own = self.settings.digest
        if digest is None or len(digest) != 64:  # of an old record, or damaged
            digest = own if name in (None, self.run_id) else ""
        if digest == own:
            return
        if digest[:10] == own[:10]:
            raise ConfigError(f"{path.parent} holds another run of the same short name; use another runs_root=.")
        whose = f"another run's, {name}" if name else "another run's"
        raise StorageError(
            f"{path} is {whose}: its settings have the digest {digest[:10] or 'none'}, those of this run have "
            f"{own[:10]}; put it back where it belongs, or delete it."
        )

    def _tell_budget(self) -> None:
        budget = self.settings.run.get("params")
        if budget:
            total = self.parameters["total"]
            far = ", more than 1 % off" if abs(total - budget) > 0.01 * budget else ""
            size = self.settings.model["hidden_size"]
            say(f"params={budget:,}: hidden size {size} has {total:,} parameters{far}")
