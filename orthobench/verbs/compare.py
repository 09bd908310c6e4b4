"""`orthobench compare TABLE...|PAPER...|all`: published numbers beside ours, or fair ones, in the terminal."""

from orthobench.errors import ConfigError
from orthobench.terminal import columns, say
from orthobench.verbs.arguments import Parser


def main(arguments: list[str]) -> int:
    """Print each table: the numbers, then the claims; of a fair one the models, length by length.

    Raises:
        ConfigError: no table, or none of that name.
    """
    from orthobench.analysis.comparison import everywhere
    from orthobench.config import table as experiment
    from orthobench.launch.plan import select
    from orthobench.report.write import section
    from orthobench.verbs.report import results_root

    parser = Parser(__doc__)
    parser.add_folders()
    given = parser.read(arguments)
    folders, results = tuple(given.config_dir), results_root(given.overrides)
    if not given.names:
        raise ConfigError("compare needs a table or paper, for example `orthobench compare sgornn/table2`.")
    for name in select(given.names, folders):
        for preset, root in everywhere(name, results):
            shown = section(experiment.load(name, folders), root, preset)
            say(shown.heading)
            if not shown.records:
                say("  nothing is recorded")
            for grid in (grid for grid in shown.grids if not grid.subject.startswith("validation")):
                if grid.case or grid.subject:
                    say(f"  {', '.join(text for text in (grid.case, grid.subject) if text)}")
                _print(grid.headers, grid.rows)
    return 0


def _print(headers: list[str], rows: list[list[str]]) -> None:
    """The columns that say something."""
    kept = [i for i in range(len(headers)) if any(row[i] for row in rows)]
    if rows:
        columns([headers[i] for i in kept], [[row[i] for i in kept] for row in rows])
