"""Rules that a record of a pack keeps, looked at before it is packed and when it is read."""

from math import isfinite
from typing import Any

from orthobench.common.registry import find
from orthobench.config import recorded
from orthobench.errors import ConfigError, OrthobenchError
from orthobench.recording.digest import FINAL
from orthobench.recording.shape import is_record
from orthobench.study.outside.texts import telling

KEPT = (
    "schema", "status", "reason", "run_id", "identity", "model", "task", "T", "seed", "steps", "epochs", "parameters",
    "budget", "split", "baseline", "baseline_reason", "metrics", "best_step", "crossed", "diverged", "orthogonality",
    "config", "sources", "code", "env", "hardware", "lengths", "time", "engine", "attempts", "curve",
)  # fmt: skip
BUDGET = 0.01  # how far a count of parameters may be from the budget that was asked for


def problem(name: str, record: dict[str, Any]) -> str:
    """The rule that a record breaks; empty where it breaks none.

    Args:
        name: of its file, without the suffix; that of its run.
        record: without places and machines, sealed.
    """
    try:
        return _broken(name, record)
    except (OrthobenchError, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        return f"its settings or numbers do not suit this version ({str(error).rstrip('.')})"


def _broken(name: str, record: dict[str, Any]) -> str:
    if not is_record(record) or not {"config", "identity", "metrics", "baseline", "hardware", "code"} <= set(record):
        return "it is not the record of a run"
    unknown = set(record) - {*KEPT, "sha256"}
    if unknown:
        return f"a record of a pack has no {sorted(unknown)[0]!r}"
    told = telling({key: value for key, value in record.items() if key != "sha256"})
    if told is not None:
        return f"{told[0]} tells {told[1]!r}, which may be a path or name a machine"
    if record["status"] not in FINAL:
        return f"its status is {record['status']}, and only runs that are {' or '.join(FINAL)} count"
    told_places = {key: record["config"].get(key) for key in recorded.PLACES}
    if told_places != recorded.PLACES or recorded.named_files(record["config"]):
        return "its settings name places of their own"
    settings = recorded.settings(record["config"])
    if (record["identity"], record["run_id"]) != (settings.digest, settings.run_id):
        return f"its settings are those of {settings.run_id}"
    told_as = {"model": settings.model["name"], "task": settings.task["name"], "seed": settings.run["seed"]}
    other = next((key for key, value in told_as.items() if record[key] != value), None)
    if other is not None:
        return f"its {other} is {record[other]}, and {told_as[other]} by its settings"
    if name != record["run_id"]:
        return f"it is the record of {record['run_id']}"
    return _over_budget(record, settings.trainer.get("max_steps")) or _odd_number(record)


def _over_budget(record: dict[str, Any], most: int | None) -> str:
    steps, asked, total = record["steps"], record["config"].get("params"), record["parameters"].get("total")
    if steps < 0 or (most is not None and most >= 0 and steps > most):
        return f"it has {steps:,} steps, and its settings allow {most:,}"
    if not isinstance(total, int) or total < 1:
        return "it has no count of parameters"
    if asked is not None and abs(total - asked) > BUDGET * asked:
        return f"it has {total:,} parameters, more than {BUDGET:.0%} off its budget of {asked:,}"
    return ""


def _odd_number(record: dict[str, Any]) -> str:
    """The number that cannot be; empty where there is none."""
    task: Any = find("task", record["task"], "task")
    for which, scores in record["metrics"].items():
        for name, value in (scores or {}).items():
            try:
                low, high = task.metric_of(name.rpartition("/")[2]).bounds
            except (ConfigError, KeyError):
                low, high = None, None
            if value is not None and not isfinite(value):
                return f"{which} {name} is {value}"
            if value is not None and ((low is not None and value < low) or (high is not None and value > high)):
                return f"{which} {name} is {value:g}, and lies between {low} and {high} by its meaning"
    if record["status"] == "done" and not record["metrics"].get("best_val"):
        return "it is done and has no score"
    points = [point for curve in (record.get("curve") or {}).values() for point in curve]
    if any(not 0 <= (step or 0) <= record["steps"] for step, _ in points):
        return "a curve goes beyond its steps"
    return ""
