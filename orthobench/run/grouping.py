"""Runs that can be trained as one program: those that differ only in the seed and in numbers of the optimizer."""

import json
from typing import Any

from orthobench.common.terminal import say
from orthobench.config.settings import Settings
from orthobench.models.build import build_task


def has_gpu(settings: Settings) -> bool:
    """Return True if a run would use a GPU."""
    from orthobench.run.memory import device_of

    return device_of(settings.trainer.get("accelerator", "auto")).type == "cuda"


def why_not(settings: Settings) -> str | None:
    """Why a run cannot be a member; None when it can."""
    model = settings.model
    if any(value for key, value in model.items() if key.endswith("dropout") and not isinstance(value, bool)):
        return "dropout would draw from one generator for all members"
    if model.get("recurrent_gradient_clip"):
        return "model.recurrent_gradient_clip clips the gradient of each member separately"
    if str(settings.trainer.get("precision")).startswith("16"):
        return "trainer.precision=16 adjusts the scale of the loss for each run separately"
    if settings.run["checkpoint"] is not None:
        return "checkpoint= goes over the segments of each run separately"
    if settings.stopping["metric"]:
        return "early stopping ends each run at a step of its own"
    if build_task(settings).carries_state:
        return f"task={settings.task['name']} carries its state from batch to batch"
    return None


def groups(runs: list[Settings], asked: bool = False) -> list[list[int]]:
    """The indices of the runs, grouped by the process that is to train them, in the order of each group's first run.

    Args:
        runs: the runs.
        asked: whether an ensemble was asked for, so that the user is told why a run gets its own process.
    """
    alike: dict[str, list[int]] = {}
    refused: dict[str, None] = {}
    for number, run in enumerate(runs):
        reason = why_not(run) if has_gpu(run) else "there is no GPU here"
        alike.setdefault(_shape(run) if reason is None else f"run {number}", []).append(number)
        if reason is not None:
            refused[reason] = None
    for reason in refused if asked else ():
        say(f"ensemble=true: a process for each run, because {reason}")
    return list(alike.values())


def _shape(settings: Settings) -> str:
    """The settings that all members of an ensemble share, as a text to compare."""
    given: dict[str, Any] = settings.as_dict()
    optimizer = {key: value for key, value in settings.optimizer.items() if isinstance(value, str)}
    own = {"seed": None, "optimizer": optimizer, "cell": None, "deviations": None}
    return json.dumps(given | own, sort_keys=True)
