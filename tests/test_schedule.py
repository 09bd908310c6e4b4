"""The factor of every schedule at steps and epochs, and what it says before a run."""

import pytest

from orthobench.optim import Constant, Exponential, Linear, Schedule, Step


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


def test_a_schedule_that_changes_nothing_says_so() -> None:
    schedule = Step(milestones=[5, 2])
    assert schedule.remark(2) == (
        "schedule=step changes nothing here: its first milestone is epoch 2, and the run has 2 whole"
    )
    assert schedule.remark(3) is None
    assert Step(milestones=[]).remark(3) == "schedule=step changes nothing here: it has no milestone"
    assert Linear().remark(0) is None
