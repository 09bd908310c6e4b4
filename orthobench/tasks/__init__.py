"""Data, loss, metric and trivial baseline. One task per file; the file's name is the word in the configuration."""

from orthobench.tasks.base import Task
from orthobench.tasks.metric import Metric

__all__ = ["Metric", "Task"]
