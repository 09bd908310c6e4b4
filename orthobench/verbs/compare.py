"""`orthobench compare TABLE...|PAPER...|all|FOLDER [KEY=VALUE...]`: published, fair or your numbers side by side."""

from pathlib import Path
from typing import TYPE_CHECKING

from orthobench.common.program import import_torch
from orthobench.common.terminal import columns, command, say
from orthobench.errors import ConfigError
from orthobench.verbs import own_runs
from orthobench.verbs.arguments import Parser, results_root

if TYPE_CHECKING:
    from orthobench.report.document import Section
    from orthobench.study.tables.composed import ComposedTable


def main(arguments: list[str]) -> int:
    """Print each table: the numbers, then the claims; of a fair one the models, length by length.

    Of a folder of runs (`runs/ model=scornn,lstm task=copying`) a table per task and length: a row per combination of
    settings, its seeds as repeats, and the best row of each model by validation.

    Raises:
        ConfigError: no table, or none of that name; no folder, or no run in it that is asked for.
    """
    parser = Parser(__doc__)
    parser.add_folders()
    given = parser.read(arguments)
    if not given.names:
        raise ConfigError(
            "compare needs a table, a paper or a folder of runs: `orthobench compare sgornn/table2` or "
            "`orthobench compare runs/`."
        )
    places = own_runs.folders(given.names, given.catalogue)
    if places:
        import_torch()
        from orthobench.report import own

        for found in own_runs.tables(places, given.overrides):
            _show(own.section(found))
        return 0
    results, asked = results_root(given.overrides), given.catalogue.select(given.names)
    import_torch()
    from orthobench.report.tables import section
    from orthobench.study.tables.composed import ComposedTable
    from orthobench.study.verdicts.comparison import recorded_presets

    for table in asked:
        for preset, root in recorded_presets(table.name, results):
            shown = section(table, root, preset)
            _show(shown, "" if shown.runs else _unrecorded(ComposedTable(table, preset), root, given.config_dir))
    return 0


def _unrecorded(composed: "ComposedTable", results: Path, config_dirs: list[Path]) -> str:
    """Sentence for a table without records: how many of the one that it is like fit it, or where none are."""
    from orthobench.study.records.recorded import lines_of_like

    table, found = composed.table, lines_of_like(composed, results)
    if not found:
        return f"nothing is recorded in {results / 'records'}; results_root= names another folder"
    options = [option for path in config_dirs for option in ("--config-dir", str(path))]
    words = command(["orthobench", "reproduce", table.name, *options])
    count = f"{len(found)} run{'s' * (len(found) != 1)} of {table.like} fit{'s' * (len(found) == 1)} this table"
    return f"{count}: `{words}` takes {'them' if len(found) > 1 else 'it'} over."


def _show(shown: "Section", nothing: str = "") -> None:
    say(shown.heading)
    if nothing:
        say(f"  {nothing}")
    from orthobench.report.fair import BY_RATE

    for grid in (grid for grid in shown.grids if grid.rows and grid.subject != BY_RATE):
        if grid.case or grid.subject:
            say(f"  {', '.join(text for text in (grid.case, grid.subject) if text)}")
        _print(grid.headers, [[str(cell) for cell in row] for row in grid.rows])
    for sentence in (*shown.facts, *shown.notes):
        say(f"  {sentence}")


def _print(headers: list[str], rows: list[list[str]]) -> None:
    """The columns that say something."""
    kept = [i for i in range(len(headers)) if any(row[i] for row in rows)]
    columns([headers[i] for i in kept], [[row[i] for i in kept] for row in rows])
