from types import SimpleNamespace
from typing import Any

import pytest

from orthobench.run.callbacks.baseline import BaselineCrossing


def validate(watcher: BaselineCrossing, losses: dict[int, float], baseline: float = 2.0) -> dict[str, int | None]:
    for step, loss in losses.items():
        module: Any = SimpleNamespace(results={"val/loss": loss}, task=SimpleNamespace(baseline={"loss": baseline}))
        watcher.on_validation_end(SimpleNamespace(global_step=step), module)
    return watcher.steps


@pytest.mark.parametrize(
    ("losses", "steps"),
    [
        ({}, {"baseline": None, "tenth": None}),
        ({10: 3.0, 20: 2.5}, {"baseline": None, "tenth": None}),
        ({10: 2.0}, {"baseline": None, "tenth": None}),  # equal is not below
        ({10: 3.0, 20: 1.9, 30: 1.0}, {"baseline": 20, "tenth": None}),
        ({10: 1.9, 20: 2.5, 30: 1.8}, {"baseline": 10, "tenth": None}),  # the first time counts
        ({10: 1.9, 20: 0.2, 30: 0.19, 40: 0.1}, {"baseline": 10, "tenth": 30}),
        ({10: 0.1}, {"baseline": 10, "tenth": 10}),
        ({10: float("nan"), 20: 1.0}, {"baseline": 20, "tenth": None}),
    ],
)
def test_first_steps_below(losses: dict[int, float], steps: dict[str, int | None]) -> None:
    assert validate(BaselineCrossing(), losses) == steps


def test_a_resumed_run_remembers() -> None:
    first, resumed = BaselineCrossing(), BaselineCrossing()
    validate(first, {10: 1.9})
    resumed.load_state_dict(first.state_dict())
    assert validate(resumed, {20: 1.8, 30: 0.1}) == {"baseline": 10, "tenth": 30}


@pytest.mark.parametrize(
    ("results", "baseline"), [({}, {"loss": 2.0}), ({"val/loss": 1.0}, {}), ({"test/loss": 1.0}, {"loss": 2.0})]
)
def test_nothing_is_crossed_without_a_loss_or_a_baseline(results: dict[str, float], baseline: dict[str, float]) -> None:
    watcher = BaselineCrossing()
    module: Any = SimpleNamespace(results=results, task=SimpleNamespace(baseline=baseline))
    watcher.on_validation_end(SimpleNamespace(global_step=10), module)
    assert watcher.steps == {"baseline": None, "tenth": None}
