"""Tasks: data, loss, metrics and the trivial predictor's score. They are in `drawn` and `real`.

Torch is imported when `Task` is asked for, so that what needs `Metric` alone stays quick.
"""

from typing import TYPE_CHECKING, Any

from orthobench.tasks.metric import Metric

if TYPE_CHECKING:
    from orthobench.tasks.base import Task

__all__ = ["Metric", "Task"]


def __getattr__(name: str) -> Any:
    if name != "Task":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from orthobench.tasks.base import Task

    return Task
