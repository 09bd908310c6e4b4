"""What a run is made of: checked settings, and the task and model that they make."""

from dataclasses import dataclass
from functools import cached_property

from orthobench.config.settings import Settings
from orthobench.models.base import Network
from orthobench.models.build import build_model, build_task
from orthobench.run.duration import Duration, duration
from orthobench.tasks.base import Task


@dataclass
class Built:
    """One training, built but not started.

    Attributes:
        settings: checked settings.
    """

    settings: Settings

    @cached_property
    def task(self) -> Task:
        """The task; no data is read before it is needed."""
        return build_task(self.settings)

    @cached_property
    def model(self) -> Network:
        """The model with its initial weights."""
        return build_model(self.settings, self.task)

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
        return duration(self.settings.trainer, self.task)
