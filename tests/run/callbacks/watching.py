"""Short runs of real models, and what their callbacks wrote."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orthobench
from orthobench.recording.curve import Curve
from orthobench.run.run import Run
from orthobench.tasks.duration import Duration

SMALL = ["task=adding", "T=8", "recipe=none", "engine=fused", "model.hidden_size=8", "task.batch_size=4"]
SHORT = ["task.val_size=8", "task.test_size=8", "trainer.max_steps=6", "trainer.log_every_n_steps=2"]


def common(tmp_path: Path, every: int = 1) -> tuple[Curve, Duration, int]:
    """What every callback is given."""
    curve = Curve(tmp_path / "metrics.csv")
    curve.cut(0)
    return curve, Duration(100, 1, 100, 50), every


def trainer(step: int = 0) -> Any:
    return SimpleNamespace(global_step=step, loggers=[])


def finished(*words: str) -> tuple[Run, Curve]:
    """A run of six steps with a look every second step and a validation every third."""
    exp = orthobench.build(*SMALL, *SHORT, "trainer.val_check_interval=3", *words)
    exp.run()
    return exp, Curve(exp.settings.folder / "metrics.csv")


def names(curve: Curve) -> set[str]:
    return {row["name"] for row in curve.rows()}


def steps(curve: Curve, name: str) -> list[int]:
    return [int(step) for step, _ in curve.of(name)]
