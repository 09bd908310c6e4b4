"""The rows of a table as they are composed today: their settings, what they count, how many examples test them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from orthobench.config.configuration import Composer
from orthobench.config.settings import Settings
from orthobench.errors import ConfigError
from orthobench.study.tables.table import FULL, Table
from orthobench.tasks.metric import Metric

if TYPE_CHECKING:
    from orthobench.tasks.base import Task

_SIZES: dict[Any, int] = {}
_COUNTS: dict[Any, tuple[dict[str, int], dict[str, int]]] = {}


@dataclass(frozen=True)
class ComposedTable:
    """A table whose rows are composed when they are asked for.

    Attributes:
        preset: `full`, or the name of what shortens it.
        extra: further words of every run.
    """

    table: Table
    preset: str = FULL
    extra: tuple[str, ...] = ()
    _composers: list[Composer] = field(default_factory=list, repr=False, compare=False)
    _rows: dict[tuple[str, bool], Settings] = field(default_factory=dict, repr=False, compare=False)

    def settings(self, row: str, seed: int | None = None) -> Settings:
        """The settings of a row for one seed; for the first one of the table by default.

        Raises:
            ConfigError: no such row, or what it asks for cannot be built.
        """
        search, own = self.table.search, self.table.seeds[0] if seed is None else seed
        searches = search is not None and own in search.seeds  # those have further words
        known = self._rows.get((row, searches))
        if known is not None:
            return known if own == known.run["seed"] else known.with_seed(own)
        found = self.unfitted(row, seed)
        if found.run["params"] is not None:
            with self._told(row):
                found = found.with_hidden_size(fitted_size(found))
        if not self._composers[0].depends(self._words(row, seed)):
            self._rows[row, searches] = found
        return found

    def unfitted(self, row: str, seed: int | None = None) -> Settings:
        """The same with the hidden size as it is written, whatever the budget of parameters comes to.

        Raises:
            ConfigError: no such row.
        """
        if not self._composers:
            self._composers.append(self.table.files.composer())
        with self._told(row, seed):
            return self._composers[0].settings(self._words(row, seed))

    def _words(self, row: str, seed: int | None) -> list[str]:
        job = self.table.runs(self.preset, [self.table.seeds[0] if seed is None else seed], [row])[0]
        return [*job.overrides, *self.extra]

    @contextmanager
    def _told(self, row: str, seed: int | None = None) -> Iterator[None]:
        """Name the table and the cell in an error of their own words; the further words may be wrong as well."""
        try:
            yield
        except ConfigError as error:
            if self.extra:
                ComposedTable(self.table, self.preset).unfitted(row, seed)
                raise
            variants = self.table.variants
            cell = variants[row].base if row in variants else self.table.base(row)
            raise type(error)(f"experiment {self.table.name}: cells.{cell}: {error}") from error

    def counts(self, row: str) -> dict[str, int]:
        """The `total` and the `recurrent` parameters of a row's model, which is built for it; no data is read.

        Raises:
            ConfigError: it cannot be built.
        """
        settings = self.settings(row)
        with self._told(row):
            return _counted(settings)[0]

    def budget(self, row: str) -> dict[str, int]:
        """The `parameters` of a row's model, its `state_bytes` and its `multiply_adds` per sequence and step.

        It is built for this, with weights in single precision; no data is read.

        Raises:
            ConfigError: it cannot be built.
        """
        settings = self.settings(row)
        with self._told(row):
            counts, budget = _counted(settings)
        return {"parameters": counts["total"], **budget}

    def lengths(self, row: str) -> tuple[tuple[int, ...], tuple[int, int]]:
        """The lengths of a row's length curve, and the least and the greatest of its training; no lengths: no curve."""
        from orthobench.tasks.lengths import Lengths

        task = self._task(row)
        if not isinstance(task, Lengths) or not task.eval_lengths:
            return (), (0, 0)
        return tuple(sorted(task.eval_lengths)), task.trained

    def baseline(self, row: str, name: str) -> float | None:
        """The trivial predictor's score of a row's task by a metric, known before any data is read; None for none."""
        try:
            return self._task(row).baseline.get(name)
        except ConfigError:  # its model or task is not there
            return None

    def order_blind(self, row: str, name: str) -> dict[int | None, float]:
        """Score, by a metric in a row's task, of knowledge of the tokens without their order.

        By length of its length curve, and under None over the lengths of training; nothing where it is not known.
        """
        from orthobench.tasks.lengths import Lengths

        task = self._task(row)
        tasks: dict[int | None, Task] = {None: task}
        if isinstance(task, Lengths):
            tasks |= {length: task.at_length(length) for length in sorted(task.eval_lengths)}
        return {length: one.order_blind[name] for length, one in tasks.items() if name in one.order_blind}

    def resolution(self, row: str, measured: Metric) -> float:
        """The least difference of two values of a metric in the records of a row; 0 where there is none."""
        split, _, name = measured.name.partition("/")
        if measured.resolution is not None or split not in ("val", "test"):
            return measured.resolution or 0.0
        return self._task(row).resolution(name.partition("@")[0], split)  # type: ignore[arg-type]

    def _task(self, row: str) -> "Task":
        from orthobench.models.build import build_task

        settings = self.settings(row)
        with self._told(row):
            return build_task(settings)


def fitted_size(settings: Settings) -> int:
    """The hidden size that a budget of parameters comes to, found once for all rates of a model and its task."""
    from orthobench.models.build import fit_to_budget

    name = (settings.run["params"], settings.hidden_size, _shape(settings))
    if name not in _SIZES:
        _SIZES[name] = fit_to_budget(settings).model["hidden_size"]
    return _SIZES[name]


def _counted(settings: Settings) -> tuple[dict[str, int], dict[str, int]]:
    """Parameters, and state and multiply-adds, of the model that is built for them."""
    from orthobench.models.build import build_model, build_task

    name = _shape(settings)
    if name not in _COUNTS:
        task = build_task(settings)
        model = build_model(settings, task)
        _COUNTS[name] = model.parameter_counts(), model.budget(task.tokens_in)
    return _COUNTS[name]


def _shape(settings: Settings) -> Any:
    """Settings that a count of parameters depends on."""
    return repr((settings.model, settings.shares, settings.task)), settings.parts
