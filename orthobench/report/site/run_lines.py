"""The recorded runs as lines of results.json: numbers, places in tables, settings, the command, and curves."""

from collections.abc import Iterable, Mapping
from math import isinf
from pathlib import Path
from typing import Any

from orthobench.common.terminal import command
from orthobench.config.recorded import by_key
from orthobench.errors import ConfigError, OrthobenchError
from orthobench.recording.digest import read_sealed
from orthobench.recording.files import within
from orthobench.study.records import curves, records
from orthobench.study.records.records import TEXT, Line
from orthobench.study.tables.composed import ComposedTable
from orthobench.study.tables.table import Table

Filled = Mapping[tuple[str, str], set[str]]
Phases = list[dict[str, Any]]
POLAR = ("modulus", "phase")


def run_lines(
    tables: Iterable[Table], results: Path, filled: Filled, runs_root: Path | None
) -> dict[str, dict[str, Any]]:
    """Every recorded run by its id.

    Args:
        tables: those that the runs may be of.
        results: the folder of the records.
        filled: ids of the runs that fill a table, by table and preset; others were made with other settings.
        runs_root: the folder of the runs, if any.
    """
    found: dict[str, dict[str, Any]] = {}
    for one in tables:
        name, lines = one.name, records.read(results, one.name)
        if not lines:
            continue
        drawn = _curves(results, name)
        composed: dict[str, ComposedTable] = {}
        settings: dict[tuple[str, str], dict[str, Any]] = {}
        for line in lines:
            preset = line.preset
            table = composed.setdefault(preset, ComposedTable(one, preset))
            fits = line.run_id in filled.get((name, preset), {line.run_id})
            if fits and (preset, line.row) not in settings:
                settings[preset, line.row] = _settings(table, line)
            run = found.setdefault(line.run_id, of_line(line, settings.get((preset, line.row), {}) if fits else {}))
            place = {"table": name, "preset": preset, "row": line.row, "seed": line.seed, "fits": fits}
            run["places"].append(place | {"record": f"records/{name}.csv"})
            if fits and not run["command"]:
                run["command"] = _command(table, line)
            run["curves"] |= drawn.get(line.run_id, {})
    for run_id, run in found.items():
        if runs_root is not None:
            run["curves"] = run["curves"] or _own_curves(runs_root, run_id)
            run["phases"] = _phases(runs_root, run_id)
    return found


def of_line(line: Line, settings: dict[str, Any]) -> dict[str, Any]:
    """A run as results.json holds it, before its places, command and curves are known."""
    values = line.values
    numbers = {name: value for name, value in values.items() if name not in TEXT}
    never = {name: "never" for name, value in numbers.items() if isinstance(value, float) and isinf(value)}
    return {
        "run_id": line.run_id,
        "model": str(values.get("model", "")),
        "task": str(values.get("task", "")),
        "seed": line.seed,
        "status": values["status"],
        "places": [],
        "command": "",
        "settings": settings | ({"seed": line.seed} if settings else {}),
        "numbers": numbers | never,
        "made": {name: value for name, value in values.items() if name in TEXT},
        "curves": {},
        "phases": [],
    }


def _settings(composed: ComposedTable, line: Line) -> dict[str, Any]:
    """Settings that change the numbers of a row, by the keys of the command line; nothing if there is no
    such row today.
    """
    try:
        return by_key(composed.settings(line.row).as_dict())
    except ConfigError:
        return {}


def _command(composed: ComposedTable, line: Line) -> str:
    try:
        (job,) = composed.table.runs(composed.preset, [line.seed], [line.row])
        composed.settings(line.row, line.seed)  # which checks them
        return command(["orthobench", *job.overrides])
    except ConfigError:
        return ""


def _curves(results: Path, table: str) -> dict[str, dict[str, list[list[float]]]]:
    found: dict[str, dict[str, list[list[float]]]] = {}
    for point in curves.read(results, table):
        found.setdefault(point.run_id, {}).setdefault(point.name, []).append([point.step, point.value])
    return found


def _own_curves(runs_root: Path, run_id: str) -> dict[str, list[list[float]]]:
    """The curves of a run's own record, thinned; none where the folder is not there or its record is damaged."""
    record = _read(runs_root, f"{run_id}/record.json") or {}
    return {name: curves.thinned(points) for name, points in (record.get("curve") or {}).items() if points}


def _phases(runs_root: Path, run_id: str) -> Phases:
    """The eigenvalues that `orthobench inspect` found, matrix by matrix; none where its file is not what it writes."""
    found = _read(runs_root, f"{run_id}/evaluations/inspect.json") or {}
    try:
        made = [
            {"layer": number, "matrix": name, **{key: [float(one) for one in matrix[key]] for key in POLAR}}
            for number, layer in enumerate(found.get("layers", ()), start=1)
            for name, matrix in layer["matrices"].items()
        ]
    except (KeyError, TypeError, ValueError, AttributeError):
        return []
    return made


def _read(runs_root: Path, name: str) -> dict[str, Any] | None:
    try:
        return read_sealed(within(runs_root, name))
    except OrthobenchError:
        return None
