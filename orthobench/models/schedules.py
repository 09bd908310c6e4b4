"""Learning-rate schedules: what multiplies the rate at every step. The arguments of each are its settings."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from orthobench.common.schema import Fraction, NonNegative, NonNegativeFloat, PositiveFloat


class Schedule(ABC):
    """Change of the learning rate over a run. The arguments of its constructor are its settings.

    Attributes:
        over_the_run: whether it asks how many steps the run has, so that one limited by time alone is refused.
    """

    over_the_run: ClassVar[bool] = True

    def remark(self, epochs: int, steps: int = 0) -> str | None:
        """Remark for a run of so many whole epochs and steps; None for nothing."""
        return None

    @abstractmethod
    def factor(self, step: int, steps: int, epoch: int) -> float:
        """Factor on the learning rate of step `step` of `steps`, in epoch `epoch`; all count from 0."""


@dataclass(frozen=True)
class Constant(Schedule):
    """The learning rate as it is."""

    over_the_run: ClassVar[bool] = False

    def factor(self, step: int, steps: int, epoch: int) -> float:
        return 1.0


@dataclass(frozen=True)
class Linear(Schedule):
    """From the learning rate to zero over the whole run."""

    def factor(self, step: int, steps: int, epoch: int) -> float:
        return max(1 - step / steps, 0.0)


@dataclass(frozen=True)
class WarmupCosine(Schedule):
    """Up to the learning rate over the first steps, then half a cosine down to a share of it at the end of the run.

    The factor of step s is (s + 1) / warmup, and after w = warmup steps floor + (1 - floor) (1 + cos(pi u)) / 2 with
    u = (s - w) / (steps - w) (Loshchilov & Hutter 2017, eq. 5, without restarts).

    Args:
        warmup: w, a number of steps or a share of the run.
        floor: the share of the learning rate at the end.
    """

    warmup: NonNegativeFloat = 0.1
    floor: Fraction = 0.0

    def remark(self, epochs: int, steps: int = 0) -> str | None:
        if self.warmup < max(steps, 1):
            return None
        return f"schedule=warmup_cosine only warms up here: warmup is {self.warmup:g} steps, and the run has {steps:,}"

    def factor(self, step: int, steps: int, epoch: int) -> float:
        warmup = self.warmup if self.warmup >= 1 else self.warmup * steps
        if step < warmup:
            return min((step + 1) / warmup, 1.0)
        passed = min((step - warmup) / max(steps - warmup, 1), 1.0)
        return self.floor + (1 - self.floor) * (1 + math.cos(math.pi * passed)) / 2


@dataclass(frozen=True)
class Step(Schedule):
    """Times gamma at each of the milestones, counted in epochs from 0.

    Args:
        gamma: factor at a milestone.
        milestones: epochs, in order.
    """

    over_the_run: ClassVar[bool] = False
    gamma: PositiveFloat = 0.1
    milestones: list[NonNegative] = (200,)  # type: ignore[assignment]

    def remark(self, epochs: int, steps: int = 0) -> str | None:
        if not self.milestones:
            return "schedule=step changes nothing here: it has no milestone"
        first = min(self.milestones)
        if first < epochs:
            return None
        return (
            f"schedule=step changes nothing here: its first milestone is epoch {first}, and the run has {epochs} whole"
        )

    def factor(self, step: int, steps: int, epoch: int) -> float:
        return self.gamma ** sum(epoch >= milestone for milestone in self.milestones)


@dataclass(frozen=True)
class Exponential(Schedule):
    """Times gamma after every epoch.

    Args:
        gamma: factor of an epoch.
    """

    over_the_run: ClassVar[bool] = False
    gamma: PositiveFloat = 0.8

    def remark(self, epochs: int, steps: int = 0) -> str | None:
        return None if epochs > 0 else "schedule=exponential changes nothing here: the run has no whole epoch"

    def factor(self, step: int, steps: int, epoch: int) -> float:
        return self.gamma**epoch
