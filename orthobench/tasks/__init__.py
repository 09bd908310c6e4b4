"""Tasks: data, loss, metrics and the trivial predictor's score. Torch is imported when `Task` is asked for."""

from typing import Any

__all__ = ["Task"]


def __getattr__(name: str) -> Any:
    """`Task`, from its own module, so that what needs the declared metrics' type alone stays quick."""
    if name != "Task":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from orthobench.tasks.base import Task

    return Task
