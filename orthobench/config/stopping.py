"""The settings of early stopping, checked against the task: when a run has solved it, and when it is flat."""

from typing import Any

from orthobench.common.schema import Field, OptionalPositive, did_you_mean
from orthobench.errors import ConfigError

STOPPING = {
    "patience": Field("patience", OptionalPositive, None),
    "threshold": Field("threshold", float | None, None),
    "metric": Field("metric", str | None, None),
    "hold": Field("hold", OptionalPositive, None),
    "extra_steps": Field("extra_steps", OptionalPositive, None),
    "flat_metric": Field("flat_metric", str | None, None),
}
NEEDS = {"hold": "threshold", "extra_steps": "threshold", "flat_metric": "patience"}


def stopping_settings(filled: dict[str, Any], task: Any, recorded: bool = False) -> dict[str, Any]:
    """When training ends early; without a metric it is the task's own by which the best weights are chosen.

    Args:
        filled: the settings, defaults filled in.
        task: the task.
        recorded: whether they are those of a run that has been, whose task is not asked, as that may read its data.

    Raises:
        ConfigError: a setting has no effect without another one, or a metric is none of the task's.
    """
    for key, needed in NEEDS.items():
        if filled[key] is not None and filled[needed] is None:
            raise ConfigError(f"stopping.{key}={filled[key]} has no effect without stopping.{needed}=: set that, too.")
    metric = filled["metric"]
    if filled["patience"] is None and filled["threshold"] is None:
        if metric is not None:
            needs = "stopping.patience=, in validations, or stopping.threshold="
            raise ConfigError(f"stopping.metric={metric} has no effect without {needs}: set one of them.")
        return filled
    for key in ("metric", "flat_metric"):
        if filled[key] is not None and not recorded and filled[key] not in task.metrics:
            known = did_you_mean(filled[key], task.metrics)
            raise ConfigError(f"stopping.{key}={filled[key]} is no metric of this task: {known}")
    return filled | {"metric": metric or task.metric}
