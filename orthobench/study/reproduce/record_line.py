"""From a run's folder to its line in the records: values of record.json, and values that a table reads from curves."""

from math import isfinite
from typing import TYPE_CHECKING, Any

from orthobench.config.settings import Settings
from orthobench.errors import ConfigError, StorageError
from orthobench.recording.curve import sealed, thinned
from orthobench.recording.digest import FINAL, final
from orthobench.recording.files import read_json
from orthobench.recording.sources import refuse_changed
from orthobench.study.records.curves import POINTS, CurvePoint
from orthobench.study.records.records import Line, line
from orthobench.study.tables.curve_values import from_curve
from orthobench.study.tables.published import load_table
from orthobench.study.tables.table import Table
from orthobench.study.verdicts.trials import LOSS

if TYPE_CHECKING:
    from orthobench.tasks.base import Task
    from orthobench.tasks.duration import Duration

LEARNT, LEARNING = ("train/loss",), 20  # learning curves beside those of validation, and how many points they keep


def record_line(settings: Settings, table: Table, preset: str, row: str) -> Line | None:
    """The line of a run in the records; None while the run is not finished.

    Raises:
        ConfigError: its plug-ins or its data have changed since.
        StorageError: the record is another run's, or its curves have been changed.
    """
    record = _own(settings)
    if record is None:
        return None
    wanted = {row.metric for row in load_table(table) if "@" in row.metric} | ({LOSS} if table.search else set())
    points = sealed(settings.folder, record).points() if wanted else {}
    found = from_curve(sorted(wanted), points, record["baseline"])
    return line(record, preset, row, found, _lengths(settings)[1].epoch_steps)


def why_stale(settings: Settings) -> str | None:
    """Why the finished run in a folder is not the one that is asked for, in one sentence; None where it is, or none is.

    It is what keeps `record_line` from recording it.
    """
    try:
        _own(settings)
    except (ConfigError, StorageError) as error:
        return str(error)
    path = settings.folder / "record.json"
    if final(path) is None and ((read_json(path) or {}).get("status") in FINAL):
        return f"{path} has been changed since it was written, and the run is done again."
    return None


def _own(settings: Settings) -> dict[str, Any] | None:
    """The final record of a run; None while there is none."""
    path = settings.folder / "record.json"
    record = final(path)
    if record is None:
        return None
    if record.get("identity", settings.digest) != settings.digest or record["run_id"] != settings.run_id:
        raise StorageError(f"{path} is another run's, {record['run_id']}; put it back where it belongs, or delete it.")
    refuse_changed(record.get("sources"), settings)
    if (settings.folder / "metrics.csv").exists():
        sealed(settings.folder, record)
    return record


def thinned_curves(settings: Settings, table: Table, preset: str, row: str) -> list[CurvePoint]:
    """The thinned curves of a finished run: its learning curves, and in more points what figures of its table need.

    Raises:
        StorageError: they have been changed.
    """
    shown = [figure for figure in table.figures if figure.shows(table.base(row))]
    record = _own(settings)
    found = {} if record is None else sealed(settings.folder, record).points()
    run = (settings.run_id, preset, row, settings.run["seed"])
    points = {name: POINTS if any(figure.reads(name) for figure in shown) else LEARNING for name in found}
    return [
        CurvePoint(*run, name, int(step), float(value))
        for name, all_points in found.items()
        if points[name] == POINTS or name in LEARNT or name.startswith("val/")
        for step, value in thinned(all_points, points[name])
        if isfinite(value)
    ]


def steps(settings: Settings) -> int | None:
    """Optimizer steps of a whole run; None where only time limits it."""
    return _lengths(settings)[1].steps


def cost(settings: Settings) -> float:
    """A rough measure, without a unit, of the arithmetic of a run, by which runs are ordered."""
    model, (task, length) = settings.model, _lengths(settings)
    n, layers = model.get("hidden_size", 1), model.get("layers", 1)
    return float(length.steps or 1) * task.batch_size * (task.T or 500) * layers * n * (n + 50)


def _lengths(settings: Settings) -> "tuple[Task, Duration]":
    from orthobench.models.build import build_task
    from orthobench.tasks.duration import duration

    task = build_task(settings)
    return task, duration(settings.trainer, task.batches("train"))
