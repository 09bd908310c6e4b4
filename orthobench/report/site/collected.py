"""Everything that a site shows as one dictionary, which is written as results.json.

runs       by run id: its numbers by the names of the records, its places in tables with seed and path, its settings
fair       a model in a case of a fair table, with the score of every seed and length and the run behind each
published  a published number or claim beside ours, with the runs behind it
tables     title, facts, notes and lines of text of every table
models, tasks, papers     what they are, by name
answer     the first of the findings, where there are findings and the records say it
"""

from pathlib import Path
from typing import Any

from orthobench import __version__
from orthobench.analysis import findings
from orthobench.analysis.fair import FairTable, fair_tables
from orthobench.analysis.published import papers
from orthobench.analysis.searched import searched_tables
from orthobench.config import table as experiment
from orthobench.config.table import FAIR, FULL, Table
from orthobench.errors import ConfigError
from orthobench.recording.files import finite, within
from orthobench.report import fair as fair_document
from orthobench.report import paper as paper_document
from orthobench.report.document import Grid, Section
from orthobench.report.site import catalogue, fair_lines, published_lines
from orthobench.report.site.run_lines import run_lines

SCHEMA = 1


def collected(results: Path, folders: tuple[Path, ...] = (), runs_root: Path | None = None) -> dict[str, Any]:
    """The dictionary; every number in it is finite, text, or null.

    Args:
        results: the folder of the records.
        folders: those of `--config-dir`.
        runs_root: the folder of the runs, whose curves and eigenvalues are taken in where they are there.
    """
    compared = [one for paper in papers(folders) for one in paper_document.comparisons(paper, results, folders)]
    fair = fair_tables(results, folders)
    groups = (*compared, *fair, *searched_tables(results, folders))
    filled = {(one.table.name, one.preset): {line.run_id for line in one.lines} for one in groups}
    tables = [*(_table(one.table, one.preset, paper_document.section(one)) for one in compared), *map(_fair, fair)]
    found = {
        "schema": SCHEMA,
        "version": __version__,
        "tables": tables,
        "fair": [line for one in fair for line in fair_lines.of(one)],
        "published": [line for one in compared for line in published_lines.of(one)],
        "runs": run_lines(experiment.tables(folders), results, folders, filled, runs_root),
        "models": catalogue.models(folders),
        "tasks": catalogue.tasks(folders),
        "papers": catalogue.papers_of(folders),
        "answer": _answer(results),
    }
    return finite(found)


def _answer(results: Path) -> str:
    path = within(results, "findings.yaml")
    first = next((one for one in findings.read(path) if one.short), None) if path.is_file() else None
    try:
        holds = first is not None and "{" not in first.short and not findings.problems(first, results)
    except ConfigError:  # of a table or a model that has no records here
        return ""
    return first.short.partition("** ")[2] if first is not None and holds else ""


def _fair(one: FairTable) -> dict[str, Any]:
    score = {"score": one.score.name, "direction": one.score.direction, "unit": one.score.unit}
    return _table(one.table, one.preset, fair_document.section(one)) | score | {"lengths": list(one.lengths)}


def _table(table: Table, preset: str, section: Section) -> dict[str, Any]:
    grids = [
        {
            **_columns(grid),
            "numeric": sorted(grid.numeric),
            "case": grid.case,
            "subject": grid.subject,
            "runs": grid.runs,
            "details": grid.details,
        }
        for grid in section.grids
        if grid.rows
    ]
    return {
        "name": table.name,
        "preset": preset,
        "full": preset == FULL,
        "fair": table.track == FAIR,
        "anchor": section.anchor,
        "title": section.title,
        "heading": section.heading,
        "facts": section.facts,
        "records": section.records,
        "grids": grids,
        "paragraphs": section.paragraphs,
        "notes": section.notes,
        "tasks": sorted({table.chosen(row)["task"] for row in table.rows}),
        "models": sorted({table.chosen(row)["model"] for row in table.rows}),
    }


def _columns(grid: Grid) -> dict[str, Any]:
    """Headers and rows without the columns in which nothing stands, the status beside what is published."""
    order = [place for place, _ in enumerate(grid.headers) if any(row[place] for row in grid.rows)]
    if {"published", "status"} <= set(grid.headers):
        status = grid.headers.index("status")
        order.remove(status)
        order.insert(order.index(grid.headers.index("published")) + 1, status)
    headers, *rows = ([line[place] for place in order] for line in (grid.headers, *grid.rows))
    return {"headers": headers, "rows": rows}
