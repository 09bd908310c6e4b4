"""Places in the site: the path of a page by what it shows, from the root of the site."""

import hashlib
import re
from functools import cache, cached_property
from typing import Any

from orthobench.report.quantities import Quantity
from orthobench.report.site.plots import LinkedCell

INDEX, LENGTHS, CELLS, TASKS, PAPERS, RUNS, OUTSIDE = (
    f"{name}.html" for name in ("index", "lengths", "cells", "tasks", "papers", "runs", "outside")
)


@cache
def slug(name: str) -> str:
    """A name as that of a file: as it is where it is letters, digits, `_`, `.` and `-`, else with a digest of it."""
    plain = re.sub(r"[^A-Za-z0-9_.-]+|\.{2,}", "-", name).strip(".-")
    if plain == name and 0 < len(name) < 100:
        return name
    return f"{plain[:60]}-{hashlib.sha256(name.encode()).hexdigest()[:10]}"


class Places:
    """The pages of a results.json; what has no page has no place.

    Args:
        data: what results.json holds.
    """

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data

    def cell(self, name: str) -> str:
        """The page of a model."""
        return f"cells/{slug(name)}.html" if name in self.data["models"] else ""

    def task(self, name: str, anchor: str = "") -> str:
        """The page of a task, or a place in it."""
        if name not in self.data["tasks"]:
            return ""
        return f"tasks/{slug(name)}.html" + (f"#{slug(anchor)}" if anchor else "")

    def paper(self, name: str, anchor: str = "") -> str:
        """The page of a paper, or a place in it."""
        if name not in self.data["papers"]:
            return ""
        return f"papers/{slug(name)}.html" + (f"#{anchor}" if anchor else "")

    def run(self, run_id: str) -> str:
        """The page of a run."""
        return f"runs/{slug(run_id)}.html" if run_id in self.data["runs"] else ""

    def outside(self, run: dict[str, Any]) -> str:
        """The page of a run of others."""
        return f"outside/{slug(run['pack'])}/{slug(run['run_id'])}.html"

    def table(self, name: str, preset: str) -> str:
        """Place of a table: in the page of its paper, or in that of its task."""
        table = self._tables.get((name, preset))
        if table is None:
            return ""
        if table["published"]:
            return self.paper(name.split("/")[0], table["anchor"])
        return self.task(table["tasks"][0], table["anchor"])

    def title(self, name: str, preset: str) -> str:
        """The title of a table."""
        table = self._tables.get((name, preset))
        return table["title"] if table else name

    def line(self, line: dict[str, Any]) -> str:
        """Place of a model's line in a fair table."""
        return self.task(line["task"], line_id(line))

    def alike(self, table: str, preset: str, case: str) -> list[dict[str, Any]]:
        """The lines of all models in one case of a fair table."""
        return self._cases.get((table, preset, case), [])

    def value(self, value: float | None, run: str, title: str = "") -> LinkedCell:
        """The number of one run, which leads to it."""
        mark = "diverged" if value is None else ""
        return LinkedCell(mark or Quantity(value, 4), self.run(run), title or run, mark)

    @cached_property
    def _cases(self) -> dict[tuple[str, str, str], list[dict[str, Any]]]:
        found: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
        for line in self.data["fair"]:
            found.setdefault((line["table"], line["preset"], line["case"]), []).append(line)
        return found

    @cached_property
    def _tables(self) -> dict[tuple[str, str], dict[str, Any]]:
        return {(table["name"], table["preset"]): table for table in self.data["tables"]}


def line_id(line: dict[str, Any]) -> str:
    """The name of a model's line of a fair table within its page."""
    return "-".join(slug(str(line[key])) for key in ("table", "preset", "case", "model") if line[key])
