"""`orthobench tables [PAPER...|fair] [--check]`: write results/tables from what is recorded."""

from pathlib import Path

from orthobench.errors import ConfigError
from orthobench.schema import did_you_mean
from orthobench.terminal import complain, say


def main(arguments: list[str]) -> int:
    """Write the tables that changed; with `--check` write nothing, and exit 1 when one is stale.

    Raises:
        ConfigError: no such paper.
    """
    from orthobench.report import tables

    words = [word for word in arguments if word != "--check" and not word.startswith("results_root=")]
    for word in words:
        if word not in tables.PARTS:
            raise ConfigError(f"tables {word} is not known: {did_you_mean(word, tables.PARTS)}")
    roots = [word.partition("=")[2] for word in arguments if word.startswith("results_root=")]
    results = Path(roots[-1] if roots else "results")
    if "--check" in arguments:
        found = tables.stale(results)
        for path in found:
            complain(f"{path} is not what the records say; run `orthobench tables`.")
        return 1 if found else 0
    changed = tables.write(results, tuple(words) or tables.PARTS)
    for path in changed:
        say(f"wrote {path}")
    if not changed:
        say(f"{results / 'tables'} is up to date")
    return 0
