"""Testing at other lengths than those of training: the length curve of a task."""

import inspect
from pathlib import Path
from typing import Any, ClassVar, Self

from orthobench.common.schema import Positive
from orthobench.errors import ConfigError
from orthobench.tasks.base import Task

Span = tuple[Positive, Positive]


class Lengths(Task):
    """A task that can be tested at any length, whatever it is trained on.

    Attributes:
        length_key: the setting that the length is: `T`, or a range of two numbers.

    Args:
        eval_lengths: lengths in steps at which a finished run is tested as well. An empty list is left out of the
            settings, so that the ids of runs are those from before there was this key.
        **kwargs: see `Task`.

    Raises:
        ConfigError: the task has no sequences of one of these lengths.
    """

    length_key: ClassVar[str] = "T"
    _given: dict[str, Any]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        task = super().__new__(cls, *args, **kwargs)
        bound = inspect.signature(cls.__init__).bind_partial(task, *args).arguments if args else {}
        task._given = {**dict(list(bound.items())[1:]), **kwargs}
        return task

    def __init__(self, eval_lengths: tuple[Positive, ...] = (), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.eval_lengths = tuple(eval_lengths)
        for length in self.eval_lengths:
            self.at_length(length)

    @property
    def trained(self) -> tuple[int, int]:
        """The least and the greatest length of training."""
        return getattr(self, "span", None) or (self.T or 0, self.T or 0)

    def controls(self) -> tuple["Task", ...]:
        """Controls: the same task without what its answer depends on; their test scores join the length curve."""
        return ()

    @staticmethod
    def resolve(given: dict[str, Any], data_root: Path) -> dict[str, Any]:
        return {key: value for key, value in given.items() if key != "eval_lengths" or value}

    def at_length(self, length: int) -> Self:
        """The same task with every sequence of `length` steps: its batches, loss, metrics and baseline there.

        Its test split is the one to score; it is as large as this task's own, and shares no random numbers with what
        any task of the same seed trains on or validates with.

        Raises:
            ConfigError: there are no sequences of this length.
        """
        value = length if self.length_key == "T" else [length, length]
        try:
            if length < 1:
                raise ConfigError("a length must be >= 1.")
            found = type(self)(**self._given | {self.length_key: value, "eval_lengths": ()})
        except ConfigError as error:
            raise ConfigError(f"there is no test at length {length}, so choose another one: {error}") from error
        found.verify = self.verify
        return found


def span(key: str, given: tuple[int, int] | list[int]) -> tuple[int, int]:
    """A range of whole numbers, checked.

    Raises:
        ConfigError: not two numbers, the wrong way round, or below 1.
    """
    if len(given) != 2 or given[0] > given[1] or given[0] < 1:
        text = ",".join(map(str, given))
        rule = "two whole numbers >= 1, the lower one first"
        raise ConfigError(f"task.{key}=[{text}] is no range: it must be {rule}, such as task.{key}=[1,40].")
    return given[0], given[1]
