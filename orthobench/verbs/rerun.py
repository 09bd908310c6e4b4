"""`orthobench rerun TABLE ROW [seed=1]`: make a recorded run again, and say how its numbers differ from the record."""

from pathlib import Path
from typing import TYPE_CHECKING

from orthobench.common.schema import refuse_unknown
from orthobench.common.terminal import columns, say
from orthobench.config import places
from orthobench.config.places import word
from orthobench.config.words import key
from orthobench.errors import ConfigError
from orthobench.verbs.arguments import Parser

if TYPE_CHECKING:
    from orthobench.study.records.drift import Drift
    from orthobench.study.records.records import Line
    from orthobench.study.tables.table import Table

FOLDER = "rerun"  # below runs_root, so that the record of the first run is left alone
OWN = ("seed", "results_root", "runs_root")
SHOWN = 12  # numbers that are printed, those that differ most


def main(arguments: list[str]) -> int:
    """Run it, and print the verdict and the numbers that differ, beside their spread over the recorded seeds.

    Raises:
        ConfigError: no such table, row or seed, nothing of it is recorded, or its record is of other settings.
    """
    from orthobench.study.records.drift import verdict

    place, before, after, found = made_again(arguments)
    _show(f"{place}: {verdict(found)}", found, before, after)
    return 0


def made_again(arguments: list[str]) -> "tuple[str, Line, Line, list[Drift]]":
    """A recorded run's place, its record, the record of its rerun, and how the numbers differ.

    Raises:
        ConfigError: no such table, row or seed, nothing of it is recorded, or its record is of other settings.
    """
    parser = Parser(__doc__)
    parser.add_folders()
    given = parser.read(arguments)
    if len(given.names) != 2:
        raise ConfigError("rerun needs a table and a row: `orthobench rerun fair2/cued_copying gru seed=1`.")
    from orthobench.study.records import records
    from orthobench.study.records.recorded import why_other
    from orthobench.study.verdicts.searched import searched_table

    asked = {key(one): places.path(one) for one in given.overrides}
    results = Path(asked.get("results_root", "results"))
    table = given.catalogue.table(given.names[0])
    if table.search:  # with the models of --config-dir that are recorded
        table = searched_table(table, results).table
    lines = [line for line in records.read(results, table.name) if line.preset == "full"]
    row, own = _recorded(table, lines, given.names[1], results)
    before = _seed(own, asked.get("seed"), f"{table.name} {row}")
    root = Path(asked.get("runs_root", "runs")) / FOLDER
    extra = [one for one in given.overrides if key(one) not in OWN]
    from orthobench.run.run import Run
    from orthobench.study.records.drift import drifts
    from orthobench.study.reproduce.record_line import record_line
    from orthobench.study.tables.composed import ComposedTable

    (job,) = table.runs(seeds=[before.seed], rows=[row])
    run = Run.fitted(given.catalogue.settings([*job.overrides, *extra, word("runs_root", str(root))]))
    stale = why_other(before, ComposedTable(table).settings(row, before.seed)) or why_other(before, run.settings)
    if stale is not None:
        raise ConfigError(
            f"{table.name} {row} seed {before.seed}: its record, {before.run_id}, was {stale}"
            f"; record the row again by `orthobench reproduce {table.name} cell={table.cell(row)}`."
        )
    if (run.settings.folder / "record.json").is_file():
        say(f"{run.settings.folder} is a rerun made before; delete it to make another one")
    run.run()
    after = record_line(run.settings, table, "full", row)
    assert after is not None, "a run that is done has a line"
    return f"{table.name} {row} seed {before.seed}", before, after, drifts(before, after, own)


def _recorded(table: "Table", lines: "list[Line]", row: str, results: Path) -> "tuple[str, list[Line]]":
    """The name of a row, which of a searched table may be a cell's, and what is recorded of it."""
    from orthobench.study.verdicts.searched import searched_table

    if table.search and row not in table.rows:
        cell = next((one for one in searched_table(table, results).cells if one.name == row), None)
        if cell is not None and cell.state.chosen is not None:
            row = f"{row}_trial{cell.state.chosen}"
    if not lines:
        raise ConfigError(
            f"nothing is recorded of {table.name} in {results / 'records'}: run `orthobench reproduce {table.name}` "
            "first, or set results_root=."
        )
    known = list(dict.fromkeys(line.row for line in lines))
    refuse_unknown([row], known, f"nothing is recorded of {table.name} ", "")
    tuning = {seed for one in (table.search, table.tuning) if one for seed in one.seeds}
    own = sorted((line for line in lines if line.row == row), key=lambda line: line.seed)
    return row, [line for line in own if line.seed not in tuning] or own


def _seed(lines: "list[Line]", asked: str | None, place: str) -> "Line":
    found = next((line for line in lines if asked is None or str(line.seed) == asked), None)
    if found is None:
        known = ", ".join(str(line.seed) for line in lines)
        raise ConfigError(f"seed={asked} of {place} is not recorded; choose among {known}.")
    return found


def _show(heading: str, found: "list[Drift]", before: "Line", after: "Line") -> None:
    from orthobench.study.records.drift import BITWISE

    say(heading)
    for line, what in ((before, "recorded"), (after, "rerun")):
        made = [str(line.values.get(name)) for name in ("cpu", "gpu", "torch", "git") if line.values.get(name)]
        say(f"  {what}: {', '.join(made)}")
    differing = [one for one in found if one.word != BITWISE]
    if differing:
        differing.sort(key=lambda one: -abs((one.after or 0.0) - (one.before or 0.0)))
        rows = [[one.name, _text(one.before), _text(one.after), one.word, _span(one.seeds)] for one in differing]
        columns(["number", "recorded", "rerun", "", "over seeds"], rows[:SHOWN])
    say(f"  {len(found) - len(differing)} of {len(found)} numbers are bitwise the same")


def _text(value: float | None) -> str:
    return "none" if value is None else f"{value:.6g}"


def _span(seeds: tuple[float, float] | None) -> str:
    return "one seed" if seeds is None else f"{seeds[0]:.4g} to {seeds[1]:.4g}"
