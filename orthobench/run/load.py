"""A finished run's folder, opened: its settings, record, task, and the model with the weights that it ended with."""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from orthobench.common.terminal import complain
from orthobench.config import recorded
from orthobench.config.settings import Settings
from orthobench.config.yaml_file import read_yaml
from orthobench.errors import ConfigError, DataError, OrthobenchError, StorageError
from orthobench.models.base import Network
from orthobench.models.build import build_model, build_optimizer, build_schedule, build_task
from orthobench.recording import store
from orthobench.recording.checkpoint import digest_of, load_run
from orthobench.recording.digest import owner, read_sealed
from orthobench.recording.files import refuse_links
from orthobench.recording.sources import refuse_changed
from orthobench.run.learner import Learner
from orthobench.run.memory import refuse_before_building
from orthobench.run.recorded_data import Where, is_the_runs, own_files, refuse_missing, refuse_unknown, root_of
from orthobench.tasks.base import Task
from orthobench.tasks.duration import duration

Which = Literal["best", "last"]


@dataclass
class Finished:
    """A run that is done.

    Attributes:
        folder: where it is.
        settings: what it was trained with.
        record: its record.json.
        content: what config.yaml holds.
        which: which weights: the best by validation, or the last.
        where: the whole paths of the files of the user's own, by the settings of the task that name them.
        named: whether these places are named by the user now, who has moved the files.
    """

    folder: Path
    settings: Settings
    record: dict[str, Any]
    content: dict[str, Any]
    which: Which
    where: Where = field(default_factory=dict)
    named: bool = False

    @property
    def run_id(self) -> str:
        """The run's name."""
        return self.settings.run_id

    @property
    def step(self) -> int:
        """Optimizer steps that the weights have been trained for."""
        best = self.record.get("best_step")
        return self.record["steps"] if self.which == "last" or best is None else best

    @cached_property
    def task(self) -> Task:
        """The task that it was trained on; no data is read before it is needed, but files of the user's own.

        Raises:
            ConfigError: these have changed, or the record does not name them, so that they may be anybody's.
            DataError: they are not there.
        """
        if self.where and not self.is_at_hand:
            self.refuse_changed_data()
            refuse_unknown(self.run_id, self.record.get("sources"), self.settings.run["data_root"], self.where)
        return self.divided(build_task(self.settings))

    @property
    def is_at_hand(self) -> bool:
        """Return True if the files of the user's own are named by the user now, or have the content that
        the run has read.
        """
        return self.named or (
            bool(self.where) and is_the_runs(self.settings.task_made.files(), self.record.get("sources"))
        )

    def divided(self, task: Task) -> Task:
        """A task with the division that the run had; it is that of another run, where it started from one."""
        task.division_seed = (self.record.get("division") or {}).get("seed", task.seed)
        return task

    def with_task(self, root: str | None = None, **task: Any) -> Settings:
        """Its settings with others of the task, and with the division that it had."""
        found = recorded.settings(self.content, root or self.settings.run["data_root"], where=self.where, **task)
        self.divided(found.task_made)
        return found

    def before(self) -> "list[Finished]":
        """The runs that its weights come from (`init_from=`), the latest first, as far as they can be opened."""
        name, found, last = self.settings.run.get("init_from"), list[Finished](), self
        while name:
            beside = last.folder.parent / Path(name).name
            try:
                last = load(beside if beside.is_dir() else name)
            except OrthobenchError as error:
                complain(f"orthobench: what {name} was trained on is unknown: {error}")
                break
            found.append(last)
            name = last.settings.run.get("init_from")
        return found

    def refuse_changed_data(self) -> None:
        """Refuse what asks the data about this run where they are no longer those that it was trained on.

        Raises:
            ConfigError: they have changed.
            DataError: they are not there.
        """
        if self.is_at_hand:
            return
        was = self.content.get("data_root") or "data"
        refuse_missing(self.run_id, self.record.get("sources"), self.settings.run["data_root"], str(was))
        refuse_changed(self.record.get("sources"), self.settings, "trained")

    @cached_property
    def codes(self) -> dict[str, Any] | None:
        """Meaning of the numbers that the model reads and gives, see `Task.codes`; None if its data are gone."""
        try:
            self.refuse_changed_data()
            return self.task.codes()
        except (ConfigError, DataError):
            return None

    @cached_property
    def model(self) -> Network:
        """The model with its trained weights, on the CPU and without dropout."""
        return self.learner.model.eval()

    @cached_property
    def checkpoint(self) -> Path:
        """The file that has the weights.

        Raises:
            StorageError: it is missing, damaged or another run's.
        """
        folder, known = self.folder / "checkpoints", self.record.get("checkpoint") or {}
        own = {digest for digest in known.values() if digest is not None}
        names = ("last", "best") if self.which == "last" else ("best", "last")
        digests = {path: digest_of(path) for path in (folder / f"{name}.ckpt" for name in names)}
        if not any(digests.values()):
            raise StorageError(f"{folder} has no whole checkpoint; make the run again.")
        for path, digest in digests.items():
            if digest is not None and (digest in own or not own) and self._state(path)["global_step"] == self.step:
                return path
        raise StorageError(f"{folder} has no whole checkpoint of step {self.step} whose digest record.json names: "
                           "what is there is damaged or another run's; make the run again.")  # fmt: skip

    @cached_property
    def learner(self) -> Learner:
        """Learner that scores the model on a task."""
        return self.restored()

    def built(self) -> Learner:
        """The learner with its initial weights."""
        settings = self.settings
        refuse_before_building(settings, self.task)
        model = build_model(settings, self.task)
        if settings.trainer.get("precision") == "64-true":
            model.double()
        given = duration(settings.trainer, self.task.batches("train"))
        return Learner(model, self.task, build_optimizer(settings, model), build_schedule(settings), given)

    def restored(self) -> Learner:
        """The same made anew, with the weights of the checkpoint."""
        learner = self.built()
        try:
            learner.load_state_dict(self._state(self.checkpoint)["state_dict"])
        except RuntimeError as error:
            text = " ".join(str(error).split())
            raise StorageError(
                f"{self.checkpoint} does not fit the model of config.yaml, so make the run again: {text}"
            ) from error
        return learner

    @staticmethod
    def _state(path: Path) -> dict[str, Any]:
        return load_run(path)


def load(
    run: str | Path,
    which: Which = "best",
    data_root: str | None = None,
    runs_root: str | None = None,
    where: Where | None = None,
) -> Finished:
    """Open a finished run.

    Args:
        run: its folder, or its name under `runs_root`.
        which: the weights that were best by validation, or the last ones.
        data_root: where real data are now; $ORTHOBENCH_DATA or where they were, whichever has them, when None.
        runs_root: the folder of runs; $ORTHOBENCH_RUNS, or `runs`, when None.
        where: where files of the user's own are now, by setting; where they were when None.

    Raises:
        ConfigError: there is no such run, it is not finished, this version cannot read its settings, or a plug-in of
            its has changed since.
        StorageError: a file in its folder is damaged or another run's.
    """
    if which not in ("best", "last"):
        raise ConfigError(f"which={which!r} is not known: it must be 'best' or 'last'.")
    folder = store.folder_of(run, runs_root)
    refuse_links(folder)
    path = folder / "record.json"
    record = read_sealed(path)
    if record is None and path.exists():
        raise StorageError(f"{path} is damaged: its digest does not match, or it is not a record; make the run again.")
    status = "not run to its end" if record is None else record.get("status")
    if record is None or status != "done":
        raise ConfigError(f"{folder} is {status}: only a run that is done has weights to look at, so name one.")
    try:
        content = read_yaml(folder / "config.yaml")
    except (OSError, ConfigError) as error:
        raise StorageError(
            f"{folder / 'config.yaml'} cannot be read, so restore it, or make the run again: "
            f"{' '.join(str(error).split())}"
        ) from error
    try:
        root = root_of(content, record, data_root)
        files = own_files(content, record, root) | (where or {})
        settings = recorded.settings(content, root, where=files)
    except ConfigError as error:
        raise ConfigError(
            f"{folder / 'config.yaml'} cannot be used by this version, so make the run again, "
            f"or use the version that made it: {error}"
        ) from error
    _check_identity(folder, settings, record)
    refuse_changed({"plugins": (record.get("sources") or {}).get("plugins") or {}}, settings, "trained")
    return Finished(folder, settings, record, content, which, files, where is not None)


def _check_identity(folder: Path, settings: Settings, record: dict[str, Any]) -> None:
    """Refuse a folder whose settings, record and name of the run do not belong together."""
    named = {"config.yaml's first line": owner(folder / "config.yaml"), "record.json": record.get("identity")}
    for where, digest in named.items():
        if digest is not None and digest != settings.digest:
            raise StorageError(f"{folder} is not of one run: {where} names {digest[:10]}, and the settings in "
                               f"config.yaml are those of {settings.digest[:10]}; make the run again.")  # fmt: skip
    if record["run_id"] != settings.run_id:
        raise StorageError(f"{folder} is not of one run: its record is of {record['run_id']}, and the settings in "
                           f"config.yaml are those of {settings.run_id}; make the run again.")  # fmt: skip
