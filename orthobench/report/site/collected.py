"""Everything that a site shows as one dictionary, which is written as results.json.

runs       by run id: its numbers by the names of the records, its places in tables with seed and path, its settings
fair       a model in a case of a fair table, with the score of every seed and length and the run behind each
published  a published number or claim beside ours, with the runs behind it
tables     title, facts, notes and lines of text of every table
together   the models over all cases of the fair tables
figures    SVG of what no chart of a page shows, by the anchor of its table and by title; not in results.json
models, tasks, papers     what they are, by name
outside    runs of others, from the packs in results/outside; nothing else is computed from them
answer     what a reader may need, and the cells that do it, see study/verdicts/needs.py
"""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from orthobench.common.version import __version__
from orthobench.recording.files import finite
from orthobench.report import fair as fair_document
from orthobench.report import figures, searched_figures
from orthobench.report import paper as paper_document
from orthobench.report import searched as searched_document
from orthobench.report.document import Grid, Section, anchor
from orthobench.report.drawing import svg
from orthobench.report.quantities import Quantity
from orthobench.report.site import fair_lines, outside_lines, published_lines
from orthobench.report.site.catalogue import models, papers_of, tasks
from orthobench.report.site.run_lines import run_lines
from orthobench.study.catalogue import SHIPPED, Catalogue
from orthobench.study.tables.table import FAIR, FULL, SEARCHED, Table
from orthobench.study.verdicts.fair import FairTable, fair_tables
from orthobench.study.verdicts.needs import needs
from orthobench.study.verdicts.searched import searched_tables

SCHEMA = 2


def collected(results: Path, catalogue: Catalogue = SHIPPED, runs_root: Path | None = None) -> dict[str, Any]:
    """The dictionary; every number in it is finite, text, or None.

    Args:
        results: the folder of the records.
        catalogue: what is shown.
        runs_root: the folder of the runs, whose curves and eigenvalues are taken in where they are there.
    """
    compared = {name: paper_document.comparisons(name, results, catalogue) for name in catalogue.papers()}
    published = [one for found in compared.values() for one in found]
    known = catalogue.tables()
    fair, searched = fair_tables(known, results), searched_tables(known, results)
    filled = {
        (one.table.name, one.preset): {line.run_id for line in one.lines} for one in (*published, *fair, *searched)
    }
    described = {
        name: one | {"introduction": paper_document.introduction(compared.get(name, []), results)}
        for name, one in papers_of(catalogue).items()
    }
    found = {
        "schema": SCHEMA,
        "version": __version__,
        "tables": [
            *(_table(one.table, one.preset, paper_document.section(one)) for one in published),
            *map(_fair, fair),
            *(_table(one.table, one.preset, searched_document.section(one)) for one in searched),
        ],
        "together": grid_lines(fair_document.together([one for one in fair if one.preset == FULL])),
        "figures": {
            anchor(one.table.name, one.preset): {title: svg(figure) for title, figure in drawn.items()}
            for one, drawn in (
                *((one, figures.alone(one, results)) for one in published),
                *((one, searched_figures.figures(one)) for one in searched),
            )
            if drawn
        },
        "fair": [line for one in fair for line in fair_lines.of(one)],
        "published": [line for one in published for line in published_lines.of(one)],
        "runs": run_lines(known, results, filled, runs_root),
        "outside": outside_lines.of(results),
        "models": models(catalogue),
        "tasks": tasks(catalogue),
        "papers": described,
        "answer": [asdict(one) for one in needs([one for one in fair if one.preset == FULL])],
    }
    return finite(found)


def _fair(one: FairTable) -> dict[str, Any]:
    score = {"score": one.score.name, "direction": one.score.direction, "unit": one.score.unit}
    return _table(one.table, one.preset, fair_document.section(one)) | score | {"lengths": list(one.lengths)}


def _table(table: Table, preset: str, section: Section) -> dict[str, Any]:
    return {
        "name": table.name,
        "preset": preset,
        "full": preset == FULL,
        "published": table.track not in (FAIR, SEARCHED),
        "anchor": section.anchor,
        "title": section.title,
        "heading": section.heading,
        "facts": section.facts,
        "records": section.records,
        "grids": [grid_lines(grid) for grid in section.grids if grid.rows],
        "paragraphs": section.paragraphs,
        "notes": section.notes,
        "tasks": sorted(table.tasks),
        "models": sorted({table.chosen(row)["model"] for row in table.rows}),
    }


def grid_lines(grid: Grid) -> dict[str, Any]:
    """A grid as what results.json holds: `rows` as they are read, `numbers` with null in place of words."""
    return {
        **_columns(grid),
        "numeric": sorted(grid.numeric),
        "case": grid.case,
        "subject": grid.subject,
        "runs": grid.runs,
        "statuses": grid.statuses,
        "details": grid.details,
    }


def _columns(grid: Grid) -> dict[str, Any]:
    """Headers and rows without the columns in which nothing stands, the status beside what is published."""
    order = [place for place, _ in enumerate(grid.headers) if any(row[place] for row in grid.rows)]
    if {"published", "status"} <= set(grid.headers):
        status = grid.headers.index("status")
        order.remove(status)
        order.insert(order.index(grid.headers.index("published")) + 1, status)
    rows = [[row[place] for place in order] for row in grid.rows]
    return {
        "headers": [grid.headers[place] for place in order],
        "rows": [[str(cell) for cell in row] for row in rows],
        "numbers": [[cell.order if isinstance(cell, Quantity) else None for cell in row] for row in rows],
    }
