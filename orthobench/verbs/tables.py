"""`orthobench tables [PAPER...|fair] [--check] [--format latex]`: tables of what is recorded, in results/tables."""

from orthobench.common.program import import_torch
from orthobench.common.schema import refuse_unknown
from orthobench.common.terminal import complain, say, waiting
from orthobench.verbs.arguments import Parser, results_root


def main(arguments: list[str]) -> int:
    """Write the tables that changed; with `--check` write nothing, and exit 1 when a table or a record is stale.

    Raises:
        ConfigError: no such paper.
        StorageError: records are damaged, or two of them are of one row and seed.
    """
    parser = Parser(__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a table is stale")
    parser.add_argument("--format", choices=("markdown", "latex"), default="markdown", help="latex: write .tex alone")
    parser.add_folders()
    given = parser.read(arguments)
    from orthobench.report import tables

    catalogue = given.catalogue
    known = tables.parts(catalogue)
    refuse_unknown(given.names, known, "tables ", " is not known")
    chosen = tuple(given.names) or known
    results = results_root(given.overrides)
    import_torch()
    suffixes = tables.LATEX if given.format == "latex" else tables.COMMITTED
    with waiting("reading the records"):
        unfit = tables.unfit(results, chosen, catalogue)
    for sentence in unfit:
        complain(f"{sentence}; it fills nothing: `orthobench reproduce` makes it anew.")
    if given.check:
        with waiting("filling the tables"):
            found = tables.stale(results, chosen, catalogue, suffixes)
        for path in found:
            complain(f"{path} is not what the records say; run `orthobench tables`.")
        return 1 if found or unfit else 0
    with waiting("filling the tables"):
        changed = tables.write(results, chosen, catalogue, suffixes)
    for path in changed:
        say(f"wrote {path}")
    if not changed:
        say(f"{results / 'tables'} is up to date")
    return 0
