"""`orthobench compare TABLE...|PAPER...|all`: published numbers beside ours, or fair ones, in the terminal."""

from orthobench.errors import ConfigError
from orthobench.terminal import say
from orthobench.verbs.arguments import Parser


def main(arguments: list[str]) -> int:
    """Print each table: the numbers, then the claims; of a fair one the models, length by length.

    Raises:
        ConfigError: no table, or none of that name.
    """
    from orthobench.analysis.comparison import compare, everywhere
    from orthobench.analysis.fair import contest
    from orthobench.config import table as experiment
    from orthobench.launch.plan import select
    from orthobench.report import fair as fair_tables
    from orthobench.report import write as tables
    from orthobench.verbs.report import results_root

    parser = Parser(__doc__)
    parser.add_folders()
    given = parser.read(arguments)
    folders, results = tuple(given.config_dir), results_root(given.overrides)
    if not given.names:
        raise ConfigError("compare needs a table or paper, for example `orthobench compare sgornn/table2`.")
    for name in select(given.names, folders):
        table = experiment.load(name, folders)
        for preset, root in everywhere(name, results):
            if table.track == experiment.FAIR:
                fair = contest(table, root, preset)
                say(fair_tables.heading(fair))
                if not fair.lines:
                    say("  nothing is recorded")
                for length in fair.lengths:
                    if length:
                        say(f"  T={length}")
                    _print(*fair_tables.lines_of(fair, length))
                continue
            comparison = compare(table, root, preset)
            say(tables.heading(comparison))
            for headers, rows in (tables.lines_of(comparison), tables.claims_of(comparison)):
                _print(headers, rows)
    return 0


def _print(headers: list[str], rows: list[list[str]]) -> None:
    """Columns of one width; empty ones are left out."""
    kept = [i for i in range(len(headers)) if any(row[i] for row in rows)]
    lines = [[headers[i] for i in kept], *([row[i] for i in kept] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(kept))]
    for line in lines if rows else []:
        say("  " + "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())
