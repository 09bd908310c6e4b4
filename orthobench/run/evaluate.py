"""Trained weights on data that they were not trained for: other lengths, or other settings of the task.

One evaluation is one file, `<run folder>/evaluations/<digest>.json`, named by what was evaluated on what. It holds the
digests of the data that were read (`sources`) and is made again where these have changed. The run's record.json is left
as it is.
"""

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path, PurePath
from typing import Any

from orthobench.common.paths import canonical, expanded
from orthobench.config.places import word
from orthobench.config.settings import NO_EFFECT, OF_TRAINING, Settings
from orthobench.errors import ConfigError, DataError, MemoryExhausted, is_exhaustion
from orthobench.recording import record as recorder
from orthobench.recording.checkpoint import digest_of
from orthobench.recording.digest import read_sealed, write_sealed
from orthobench.recording.shape import are_numbers, are_sources
from orthobench.recording.sources import changed, refuse_changed, sources
from orthobench.run.learner import Learner
from orthobench.run.load import Finished, load
from orthobench.run.memory import device_of, refuse_test_too_large
from orthobench.run.recorded_data import is_the_runs, refuse_missing
from orthobench.run.task_data import TaskData
from orthobench.run.trainer import make_trainer, quieten
from orthobench.tasks.base import Split, Task
from orthobench.tasks.lengths import Lengths
from orthobench.tasks.real.language import Language
from orthobench.tasks.seen import count

SCHEMA = 3
OTHER_DATA = {"path", "dataset"}
OF_A_TEST = ("eval_batch_size", "num_workers")
SHAPE = ("input_size", "output_size", "readout", "tokens_in", "carries_state", "objective")


def score(trainer: Any, learner: Learner, task: Task) -> dict[str, float]:
    """`test/NAME` of the learner's weights on the test split of a task, by its own measure."""
    trained, learner.task, learner.results = learner.task, task, {}
    try:
        trainer.test(learner, datamodule=TaskData(task), verbose=False)
    finally:
        learner.task = trained
    return dict(sorted(learner.results.items()))


def at_lengths(trainer: Any, learner: Learner) -> dict[str, dict[str, float]]:
    """By length, for each of the task's `eval_lengths`: `test/NAME` there and of its controls, and `baseline/NAME`."""
    task = learner.task
    twins = {length: task.at_length(length) for length in task.eval_lengths} if isinstance(task, Lengths) else {}
    found: dict[str, dict[str, float]] = {}
    for length, twin in twins.items():
        own = score(trainer, learner, twin)
        for control in twin.controls():
            own = score(trainer, learner, control) | own
        found[str(length)] = own | {f"baseline/{name}": value for name, value in twin.baseline.items()}
    return found


def evaluate(
    run: Finished, lengths: list[int] | None = None, data_root: str | Path | None = None, **task: Any
) -> list[dict[str, Any]]:
    """Score a finished run at lengths, or on data, of choice; what has been scored before is read.

    Args:
        run: the run.
        lengths: the lengths, those of training when None.
        data_root: where real data are now; where the run has found them when None.
        **task: settings of the task in place of the run's.

    Returns:
        What each evaluation's file holds, with `found`: whether it was there before.

    Raises:
        ConfigError: no such setting or length, the model has another input or output than the task then needs, or the
            run's own data, which it is to be scored on, have changed since.
        DataError: the task's data are missing or damaged.
        MemoryExhausted: a batch of this length does not fit in memory, as was found before or by trying.
    """
    root = str(data_root) if data_root else run.settings.run["data_root"]
    run, task = _placed(run, root, task)
    if not run.is_at_hand:
        refuse_changed(run.record.get("sources"), run.with_task(root), "trained")
        if not OTHER_DATA & task.keys():
            refuse_missing(run.run_id, run.record.get("sources"), root, str(run.content.get("data_root") or "data"))
    settings, made = _task(run, root, task)
    wanted = [(made, {})] if lengths is None else [_at(run, made, n, root, task) for n in lengths]
    restored = cache(run.restored)  # whatever has been done to `run.model`
    return [_evaluation(run, restored, twin, settings, own) for twin, own in wanted]


def _placed(run: Finished, root: str, task: dict[str, Any]) -> tuple[Finished, dict[str, Any]]:
    """The run, and the settings of the task with whole paths; a file with the run's own data is where these are now."""
    keys = [key for key in run.settings.parts.task.own_files if isinstance(task.get(key), str | PurePath)]
    files = {key: canonical(expanded(str(task[key]), f"task.{key}"), f"task.{key}") for key in keys}
    if not files:
        return run, task
    rest = {key: value for key, value in task.items() if key not in files}
    sources = run.record.get("sources")
    if is_the_runs(run.with_task(root, **files).task_made.files(), sources) or (files == run.where and not sources):
        return load(run.folder, run.which, root, where=files), rest
    return run, rest if files == run.where else rest | files


def _task(run: Finished, root: str | None, given: dict[str, Any]) -> tuple[Settings, Task]:
    """The settings with others of the task, and that task, which reads its data as the model was taught to.

    Raises:
        ConfigError: it has another shape.
    """
    settings = run.with_task(root, **given)
    made = settings.task_made
    assert made is not None
    _refuse_what_is_of_training(run, made, given)
    if given.keys() & set(made.own_files) and not given.keys() & set(made.divides):
        made.take_whole()
    if type(made) is type(run.task):
        made.read_as(run.task)
    _refuse_another_shape(run, made, given)
    return settings, made


def _refuse_what_is_of_training(run: Finished, task: Task, given: dict[str, Any]) -> None:
    """Refuse settings that change nothing in a test, and another division of data that the model has seen."""
    own = run.settings.task
    others = {key: value for key, value in given.items() if value != own.get(key)}
    for key, value in given.items():
        asked = f"{word(f'task.{key}', value)} does not apply to {run.run_id}, which is finished"
        if key == "eval_lengths":
            raise ConfigError(f"{asked}: use {word('T', value)} to test other lengths.")
        of_training = key in OF_TRAINING or (key == "val_size" and key not in task.divides)
        if of_training and key not in OF_A_TEST:
            raise ConfigError(f"{asked}: it changes nothing in a test, so leave it out.")
        if key == "normalisation" and key in others:
            raise ConfigError(f"{asked}: its weights are of inputs with {word(f'task.{key}', own[key])}; leave it out.")
        if key in task.divides and key in others and not others.keys() & OTHER_DATA:
            raise ConfigError(f"{asked}: the test part would have what the model was trained on, so leave it out.")


def _refuse_another_shape(run: Finished, task: Task, given: dict[str, Any]) -> None:
    """Refuse a task whose inputs or outputs the model was not made for."""
    for name in SHAPE:
        now, then = getattr(task, name), getattr(run.task, name)
        if now != then:
            words = " ".join(word(key if key == "T" else f"task.{key}", value) for key, value in given.items())
            what = name.replace("_", " ")
            raise ConfigError(
                f"{words} does not suit {run.run_id}: {what} would be {now}, and the model has {then}"
                "; leave out what changes it."
            )


def _at(run: Finished, task: Task, length: int, root: str | None, given: dict[str, Any]) -> tuple[Task, dict[str, Any]]:
    """The task at one length, and the setting that says so."""
    if isinstance(task, Lengths):
        return task.at_length(length), {task.length_key: length if task.length_key == "T" else [length, length]}
    name = run.settings.task["name"]
    if task.fixed_length:
        raise ConfigError(f"T={length} does not apply to task={name}, so leave it out: {task.fixed_length}.")
    _, made = _task(run, root, {"T": length} | given)
    if length != made.T:
        raise ConfigError(
            f"T={length} does not apply to task={name}: its length follows from its data, so leave T out."
        )
    return made, {"T": length}


def _evaluation(
    run: Finished, restored: Callable[[], Learner], task: Task, settings: Settings, own: dict[str, Any]
) -> dict[str, Any]:
    """The content of one evaluation's file, made unless it is there and of the same data."""
    kept = {key: value for key, value in (settings.task | own).items() if key not in (*NO_EFFECT, "eval_lengths")}
    limit = run.settings.trainer.get("limit_test_batches")
    key = {
        "schema": SCHEMA,
        "run": run.settings.digest,
        "weights": run.which,
        "task": kept,
        "limit_test_batches": limit,
    }
    other = any(settings.task.get(name) != run.settings.task.get(name) for name in OTHER_DATA)
    if other:
        key["other_data"] = "whole" if task.whole else "test part"
    name = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:16]
    path = run.folder / "evaluations" / f"{name}.json"
    digest, found = digest_of(run.checkpoint), read_sealed(path)
    wanted = {"identity": run.settings.digest, "checkpoint": digest, "task": kept}
    if found is not None and _is_of(found, wanted) and not changed(found["sources"], settings):
        return {**found, "found": True}
    made_of, learner = sources(settings, task.files_read()), restored()
    refuse_test_too_large(learner.model, task, run.settings.trainer.get("accelerator", "auto"))
    trainer = _trainer(run, task)
    try:
        metrics = score(trainer, learner, task)
    except (RuntimeError, MemoryError, OSError) as error:
        if is_exhaustion(error):
            raise MemoryExhausted(
                f"{task.eval_batch_size} sequences at once do not fit in memory; set a smaller task.eval_batch_size=."
            ) from error
        raise
    hardware = recorder.hardware(learner.device)
    learner.cpu()
    content = {
        "schema": SCHEMA,
        "run_id": run.run_id,
        "identity": run.settings.digest,
        "weights": run.which,
        "step": run.step,
        "checkpoint": digest,
        "task": kept,
        "sources": made_of,
        "length": kept.get(task.length_key) if isinstance(task, Lengths) else task.T,
        "T": task.T,
        "examples": _tested(trainer, task),
        "unit": task.unit,
        **({"whole": task.whole, "seen": _seen(run, task)} if other else {}),
        "metrics": metrics,
        "baseline": task.baseline,
        "baseline_reason": task.baseline_reason,
        "code": recorder.code(),
        "env": recorder.environment(),
        "hardware": hardware,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    return {**write_sealed(path, content), "found": False}


def _seen(run: Finished, task: Task) -> dict[str, int] | None:
    """Number of tested rows that the run was trained on (`train`), or chosen by (`val`); None if unknown."""
    rows = task.row_digests("test")
    known: dict[Split, set[bytes]] = {"train": set(), "val": set()}
    with suppress(DataError):
        for one in (run, *run.before()):
            for split, found in known.items() if type(one.task) is type(task) else ():
                found.update(one.task.row_digests(split))
    counts = {split: count(rows, found) for split, found in known.items()}
    return counts | {"of": len(rows)} if rows and any(known.values()) else None


def _is_of(found: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """Return True if a file is an evaluation of these weights on this task, and has everything that is shown of one."""
    own = {name: found.get(name) for name in wanted} == wanted
    length = found.get("length")
    ends = length if isinstance(length, list) else [length]
    numbers = all(isinstance(one, int | None) for one in (*ends, found.get("examples")))
    scores = are_numbers(found.get("metrics")) and are_numbers(found.get("baseline"))
    known = found.get("sources") is not None and are_sources(found["sources"])
    return own and numbers and scores and known and isinstance(found.get("unit"), str)


def _trainer(run: Finished, task: Task) -> Any:
    """A trainer for testing, on a GPU only where there is one."""
    quieten()
    asked = run.settings.trainer.get("accelerator", "auto")
    device = "cpu" if asked == "cpu" else device_of("auto").type
    given = {**run.settings.trainer, "accelerator": "gpu" if device == "cuda" else "cpu"}
    return make_trainer(given, task, run.learner.duration, [], False, str(run.folder))


def _tested(trainer: Any, task: Task) -> int | None:
    """Number of examples that the test has seen, which may be limited; None if that is unknown."""
    batches, examples = sum(trainer.num_test_batches), task.examples("test")
    if isinstance(task, Language):
        return task.predicted("test", batches)
    return None if examples is None else min(examples, batches * task.eval_batch_size)
