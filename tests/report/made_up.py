"""Records that no run made, for tests of what is computed from records."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from orthobench.study.catalogue import Catalogue
from orthobench.study.records import records
from orthobench.study.records.records import Line
from orthobench.study.tables.composed import ComposedTable


def made_up(cell: str, seed: int, preset: str = "full", **values: Any) -> Line:
    """A line of a finished run; `diverged=True` for one that diverged; `a__b` stands for a/b, `a___b` for a:b."""
    named = {name.replace("___", ":").replace("__", "/"): value for name, value in values.items()}
    status = "diverged" if named.pop("diverged", False) else "done"
    common = {"run_id": f"task-model-{cell}-{seed}-{preset}", "preset": preset, "cell": cell, "seed": seed}
    return Line({**common, "status": status, "model": "model", "task": "task", "steps": 10, **named})


def record(results: Path, table: str, lines: Iterable[Line], folders: tuple[Path, ...] = ()) -> None:
    """Write lines as those of runs with today's settings of their rows."""
    records.write(results, table, [_of_today(line, table, folders) for line in lines])


def _of_today(line: Line, table: str, folders: tuple[Path, ...]) -> Line:
    settings = ComposedTable(Catalogue(folders).table(table), line.preset).settings(line.row, line.seed)
    return Line(line.values | {"run_id": settings.run_id})
