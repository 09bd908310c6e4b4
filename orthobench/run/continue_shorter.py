"""A run that is a longer one of a finished run goes on from where that one ended.

The longer run has the same bits as if it had been trained alone. It is therefore only begun this way where everything
but the length is equal, the learning rate's schedule does not depend on the length, and the shorter run's last
validation is one that the longer run has too.
"""

from pathlib import Path
from typing import Any

from orthobench.common.terminal import say
from orthobench.config import recorded
from orthobench.config.settings import Settings
from orthobench.config.yaml_file import read_yaml
from orthobench.errors import ConfigError, OrthobenchError, StorageError
from orthobench.models.build import build_schedule
from orthobench.recording.checkpoint import SafeCheckpointIO, load_own, of_step, previous, verified
from orthobench.recording.digest import read_sealed
from orthobench.recording.sources import refuse_changed, refuse_unrecorded
from orthobench.run.built import Built
from orthobench.tasks.duration import duration

LENGTHS = ("max_steps", "max_epochs")
CHECKED = 2000  # steps at which two schedules are compared


def begin_from_shorter(run: Built, folder: Path) -> None:
    """Put the checkpoints of the longest finished run of the same settings into the folder of a run that has none.

    What stands against it is said; the run then starts from its beginning.
    """
    if (folder / "checkpoints").exists() or not run.duration.steps:
        return
    found = sorted(_shorter(run.settings), key=lambda one: one[1]["steps"], reverse=True)
    if not found:
        return
    other, record = found[0]
    problem = _problem(run, other, record) or _taken_over(run.settings.digest, folder, other, record)
    steps = f"{other.run_id} has its first {record['steps']:,} steps"
    say(f"{steps}: going on from them" if problem is None else f"{steps}, but {problem}: starting from the beginning")


def _shorter(settings: Settings) -> list[tuple[Settings, dict[str, Any]]]:
    """The finished runs that differ from this one in nothing but their length, and are shorter."""
    found = []
    name, seed = settings.run_id.rpartition("-")[0], settings.run["seed"]
    for folder in settings.folder.parent.glob(f"{name}-*"):
        if folder.is_symlink():
            continue
        record = read_sealed(folder / "record.json")
        if folder == settings.folder or record is None or (record["status"], record["seed"]) != ("done", seed):
            continue
        try:
            content = read_yaml(folder / "config.yaml")
            refuse_unrecorded(record.get("sources"), recorded.named_files(content), str(folder))
            other = recorded.settings(content, settings.run["data_root"])
        except (OSError, OrthobenchError):
            continue  # of another version, or damaged: not a run to go on from
        if other.run_id == folder.name and _without_length(other) == _without_length(settings):
            found.append((other, record))
    own = settings.trainer.get("max_steps", -1)
    return [(other, record) for other, record in found if own == -1 or record["steps"] < own]


def _without_length(settings: Settings) -> dict[str, Any]:
    trainer = {key: value for key, value in settings.identity["trainer"].items() if key not in LENGTHS}
    return settings.identity | {"trainer": trainer}


def _problem(run: Built, other: Settings, record: dict[str, Any]) -> str | None:
    """Why the longer run cannot go on from the shorter one's end; None if it can."""
    steps, length, schedule = record["steps"], run.duration, build_schedule(run.settings)
    short = duration(other.trainer, run.task.batches("train"))
    if other.trainer.get("max_time") or steps != short.steps or length.steps is None or steps >= length.steps:
        return "it was not ended by its number of steps"
    for step in range(0, steps, max(steps // CHECKED, 1)):
        epoch = length.epochs(step)
        if schedule.factor(step, steps, epoch) != schedule.factor(step, length.steps, epoch):
            return f"schedule={run.settings.schedule['name']} depends on the length"
    if steps * length.accumulate % length.val_every:
        return f"this run has no validation after step {steps:,}, where the shorter one has its last"
    return None


def _taken_over(identity: str, folder: Path, other: Settings, record: dict[str, Any]) -> str | None:
    """Write the shorter run's checkpoints as this run's; why that is not possible, or None."""
    try:
        found = _checkpoints(other, record["steps"])
    except (ConfigError, StorageError) as error:
        return str(error).rstrip(".")
    for name, content in found.items():
        content["callbacks"]["Saver"].setdefault("origin", {})["identity"] = identity
        SafeCheckpointIO().save_checkpoint(content, folder / "checkpoints" / f"{name}.ckpt")
    return None


def _checkpoints(run: Settings, steps: int) -> dict[str, dict[str, Any]]:
    """The best checkpoint of a finished run of so many steps, and that of its last validation.

    Raises:
        ConfigError: the run's plug-ins or data have changed.
        StorageError: one of them is damaged, missing or another's.
    """
    source = run.folder.parent / run.run_id / "checkpoints"
    last = previous(source / "last.ckpt")  # of the last validation; the newest is from after the end of training
    if verified(last) is None:
        raise StorageError("its last checkpoint is damaged or missing")
    state = load_own(last, run.digest)
    saved = state["callbacks"]["Saver"]
    if state["global_step"] != steps or saved["finished"] is not None:
        raise StorageError("its last checkpoint is not of its last validation")
    refuse_changed((saved.get("origin") or {}).get("sources"), run)
    best = of_step(saved["best_step"], run.digest, source / "best.ckpt", source / "last.ckpt")
    if best is None:
        raise StorageError("its best checkpoint is damaged or missing")
    return {"best": load_own(best, run.digest), "last": state}
