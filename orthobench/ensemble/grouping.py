"""Which runs can be trained as one program: those that differ in seed and in numbers of the optimizer only."""

import json
from typing import Any

from orthobench.config.settings import Settings
from orthobench.run.build import build_task
from orthobench.terminal import say


def has_gpu(settings: Settings) -> bool:
    """Whether a run would use a GPU."""
    from orthobench.run.memory import device_of

    return device_of(settings.trainer.get("accelerator", "auto")).type == "cuda"


def why_not(settings: Settings) -> str | None:
    """Why a run cannot be a member; null when it can."""
    model = settings.model
    if any(value for key, value in model.items() if key.endswith("dropout") and not isinstance(value, bool)):
        return "dropout would draw for all members from one generator"
    if model.get("recurrent_gradient_clip"):
        return "model.recurrent_gradient_clip looks at one member's gradient on its way back"
    if str(settings.trainer.get("precision")).startswith("16"):
        return "a search for the loss's scale goes on per run (trainer.precision=16)"
    if settings.logger["name"] == "wandb":
        return "wandb has one run per process"
    if build_task(settings).carries_state:
        return f"task={settings.task['name']} carries its state from batch to batch"
    return None


def groups(runs: list[Settings], asked: bool = False) -> list[list[int]]:
    """The numbers of the runs, those together that one process is to train; in the order of each one's first.

    Args:
        runs: the runs.
        asked: whether to say why those that asked for an ensemble get processes of their own.
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
    """What members have in common."""
    given: dict[str, Any] = settings.as_dict()
    optimizer = {key: value for key, value in settings.optimizer.items() if isinstance(value, str)}
    own = {"seed": None, "optimizer": optimizer, "cell": None, "deviations": None}
    return json.dumps(given | own, sort_keys=True)
