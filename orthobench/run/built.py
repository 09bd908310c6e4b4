"""Parts of a run: checked settings, and the task and model that they make."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import torch

from orthobench.common.paths import absolute
from orthobench.common.terminal import complain
from orthobench.config.settings import Settings
from orthobench.errors import ConfigError
from orthobench.models.base import Network
from orthobench.models.build import build_model, build_task
from orthobench.run.kept_division import is_divided_alike
from orthobench.run.memory import refuse_before_building
from orthobench.tasks.base import Task
from orthobench.tasks.duration import Duration, duration
from orthobench.tasks.example import example

if TYPE_CHECKING:
    from orthobench.run.load import Finished

CODED = {"vocabulary": "vocabulary", "classes": "set of classes"}  # of `Task.codes`, in words


@dataclass
class Built:
    """Training that is built but not started.

    Attributes:
        settings: checked settings.
    """

    settings: Settings

    @property
    def datamodule(self) -> NoReturn:
        """Name of version 0.1.0 for `task`."""
        raise AttributeError("exp.datamodule is exp.task now, a plain class without Lightning's loaders.")

    @cached_property
    def task(self) -> Task:
        """The task, with the division of the run `init_from=`, where that has the same data.

        Raises:
            ConfigError: there is no such run.
        """
        made = build_task(self.settings)
        earlier = [] if self.first is None else [self.first, *self.first.before()]
        same = next((run for run in earlier if is_divided_alike(self.settings, made, run)), None)
        if same is not None:
            made.division_seed = same.task.division_seed
        return made

    @cached_property
    def first(self) -> "Finished | None":
        """The run from whose weights this one starts; None where it starts from none.

        Raises:
            ConfigError: there is no such run, it is not done, or its folder has another name than the run.
        """
        name = self.settings.run.get("init_from")
        if name is None:
            return None
        from orthobench.run.load import load  # which opens runs, and so needs what a run is made of

        given, root = self.settings.run["data_root"], self.settings.run["runs_root"]
        run = load(name, data_root=None if absolute(given) == absolute("data") else given, runs_root=root)
        if Path(name).name != run.run_id:
            raise ConfigError(
                f"init_from={name} is the run {run.run_id} under another name, "
                f"and the name of that folder is part of this run's own name: rename it to {run.run_id}."
            )
        return run

    @cached_property
    def model(self) -> Network:
        """The model with its initial weights, those of the run `init_from=` where one is named.

        Raises:
            ConfigError: it is too large for any memory here; or there is no such run, it is not done, its folder has
                another name than the run, or its weights do not fit.
        """
        refuse_before_building(self.settings, self.task)
        model, name, run = build_model(self.settings, self.task), self.settings.run.get("init_from"), self.first
        if run is not None:
            if self.settings.trainer.get("precision") == "64-true":
                model.double()  # or weights in double precision would be rounded
            try:
                model.load_state_dict(run.model.state_dict())
            except RuntimeError as error:
                raise ConfigError(
                    f"init_from={name} does not fit this run's model{self._others(run)}; "
                    "set them alike, or name another run."
                ) from error
            if not _alike(model, run.model, run.task):
                raise ConfigError(
                    f"init_from={name}: its weights compute something else here{self._others(run)}; "
                    "set them alike, or name another run."
                )
            if type(self.task) is type(run.task):  # another task has other data in any case
                ours, theirs = self.task.codes(), run.codes or {}
                for key in (key for key in CODED if key in theirs and ours.get(key) != theirs[key]):
                    complain(f"orthobench: init_from={name} was trained with another {CODED[key]} than this run's.")
        return model

    def _others(self, run: Any) -> str:
        """The settings of the model that are not those of another run, as the end of a sentence."""
        ours, theirs = self.settings.model, run.settings.model
        found = [f"model.{key}={ours[key]} is {theirs.get(key)} there" for key in ours if ours[key] != theirs.get(key)]
        for what in ("input_size", "output_size"):
            here, there = getattr(self.task, what), getattr(run.task, what)
            found += [f"the task's {what} of {here:,} is {there:,} there"] if here != there else []
        return f": {', '.join(found)}" if found else ""

    @property
    def parameters(self) -> dict[str, int]:
        """Free parameters, `total` and `recurrent`."""
        return self.model.parameter_counts()

    @property
    def budget(self) -> dict[str, int]:
        """`state_bytes` and `multiply_adds` of a sequence, see `Network.budget`."""
        return self.model.budget(self.task.tokens_in)

    @property
    def run_id(self) -> str:
        """The name of the run's folder."""
        return self.settings.run_id

    @cached_property
    def duration(self) -> Duration:
        """Lengths in steps."""
        return duration(self.settings.trainer, self.task.batches("train"))


@torch.no_grad()
def _alike(one: Network, other: Network, task: Task) -> bool:
    """Return True if two networks with the same weights compute the same from random inputs of a task."""
    found = []
    for network in (one, other):
        dtype, training = next(network.parameters()).dtype, network.training
        y = network.eval()(example(task, 2, 5, dtype))[0].double()
        network.train(training)
        found.append(y[:, -1] if y.dim() == 3 else y)
    return bool(torch.allclose(*found, rtol=1e-3, atol=1e-4))
