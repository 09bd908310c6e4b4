"""The factor of every schedule at steps and epochs, and what it says before a run."""

import warnings

import pytest
import torch
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR

from orthobench.models.schedules import Constant, Exponential, Linear, Schedule, Step, WarmupCosine


@pytest.mark.parametrize(
    ("schedule", "step", "epoch", "expected"),
    [
        (Constant(), 0, 0, 1.0),
        (Constant(), 99, 9, 1.0),
        (Linear(), 0, 0, 1.0),
        (Linear(), 25, 0, 0.75),
        (Linear(), 99, 0, 0.01),
        (Linear(), 100, 0, 0.0),
        (Linear(), 101, 0, 0.0),
        (Step(gamma=0.5, milestones=[2, 4]), 0, 1, 1.0),
        (Step(gamma=0.5, milestones=[2, 4]), 0, 2, 0.5),
        (Step(gamma=0.5, milestones=[2, 4]), 0, 3, 0.5),
        (Step(gamma=0.5, milestones=[2, 4]), 0, 4, 0.25),
        (Step(gamma=0.5, milestones=[]), 0, 9, 1.0),
        (Exponential(gamma=0.8), 50, 0, 1.0),
        (Exponential(gamma=0.8), 0, 1, 0.8),
        (Exponential(gamma=0.8), 0, 3, 0.512),
    ],
)
def test_schedule(schedule: Schedule, step: int, epoch: int, expected: float) -> None:
    assert schedule.factor(step, 100, epoch) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("warmup", "floor"), [(4, 0.0), (4, 0.1), (0.2, 0.0), (0, 0.25)])
def test_warm_up_and_cosine_are_those_of_torch(warmup: float, floor: float) -> None:
    steps, w = 20, 4 if warmup else 0
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    cosine = CosineAnnealingLR(optimizer, steps - w, eta_min=floor)
    ramp = LinearLR(optimizer, 1 / w, total_iters=w - 1) if w else None
    scheduler = SequentialLR(optimizer, [ramp, cosine], [w]) if ramp else cosine
    schedule, expected = WarmupCosine(warmup, floor), []
    for _ in range(steps):
        expected.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's own use of an argument that it deprecates
            scheduler.step()
    assert [schedule.factor(step, steps, 0) for step in range(steps)] == pytest.approx(expected, rel=1e-12)
    assert schedule.factor(steps + 5, steps, 0) == pytest.approx(floor)


def test_a_schedule_that_changes_nothing_says_so() -> None:
    schedule = Step(milestones=[5, 2])
    assert schedule.remark(2) == (
        "schedule=step changes nothing here: its first milestone is epoch 2, and the run has 2 whole"
    )
    assert schedule.remark(3) is None
    assert Step(milestones=[]).remark(3) == "schedule=step changes nothing here: it has no milestone"
    assert Linear().remark(0) is None
