"""`orthobench compare TABLE...|PAPER...|all`: published numbers beside ours, or fair ones, in the terminal."""

from orthobench.errors import ConfigError
from orthobench.experiment import FULL
from orthobench.terminal import say


def main(arguments: list[str]) -> int:
    """Print each table: the numbers, then the claims; of a fair one the models, length by length.

    Raises:
        ConfigError: no table, or none of that name.
    """
    from orthobench import experiment
    from orthobench.report import fair_tables, tables
    from orthobench.report.comparison import compare, presets
    from orthobench.report.fair import contest
    from orthobench.reproduce import select
    from orthobench.verbs.report import results_root

    results = results_root([word for word in arguments if "=" in word])
    names = [word for word in arguments if "=" not in word]
    if not names:
        raise ConfigError("compare needs a table or paper, for example `orthobench compare sgornn/table2`.")
    for name in select(names):
        for preset in (FULL, *presets(name, results)):
            if experiment.load(name).track == experiment.FAIR:
                fair = contest(name, results, preset)
                say(fair_tables.heading(fair))
                for length in fair.lengths:
                    if length:
                        say(f"  T={length}")
                    _print(*fair_tables.lines_of(fair, length))
                continue
            comparison = compare(name, results, preset)
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
