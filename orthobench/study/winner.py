"""Recipe of a winner: the settings of a recorded row, or of a run of one's own, as a file that runs by `--config-dir`.

Only settings that this version has checked get into the file, and it is read back before it is kept: it must name the
same run. What records say stands in comments of one line each.
"""

import re
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from orthobench.common.schema import refuse_unknown
from orthobench.common.terminal import command, comment
from orthobench.config import recorded
from orthobench.config.configuration import Configuration
from orthobench.config.overrides import recipe
from orthobench.config.settings import Settings
from orthobench.errors import ConfigError
from orthobench.recording.files import write_bytes
from orthobench.recording.sources import refuse_unrecorded
from orthobench.study.records import records
from orthobench.study.records.recorded import why_other
from orthobench.study.records.records import Line
from orthobench.study.statistics.statistics import in_words
from orthobench.study.tables.composed import ComposedTable
from orthobench.study.tables.table import FAIR, FULL, SEARCHED, Table
from orthobench.study.verdicts.fair import fair_table
from orthobench.study.verdicts.own_tables import OwnRow
from orthobench.study.verdicts.searched import searched_table

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


@dataclass(frozen=True)
class Winner:
    """Settings with what is known of them.

    Attributes:
        title: what they are.
        settings: checked, with the first of the seeds.
        lines: the recorded runs.
        source: where these are recorded.
        notes: further sentences, such as why a record is stale.
    """

    title: str
    settings: Settings
    lines: Sequence[Line]
    source: str
    notes: tuple[str, ...] = ()

    @property
    def comments(self) -> list[str]:
        """Title, scores, seeds, runs and source, a line each."""
        name = self.settings.parts.task.metric
        scores = [_spread(f"{split}/{name}", self.lines) for split in ("val", "test")] if isinstance(name, str) else []
        by = {str(line.values.get(key)) for line in self.lines for key in ("git", "torch") if line.values.get(key)}
        made = f", made with {', '.join(sorted(by))}" if by else ""
        lines = [
            self.title,
            *(score for score in scores if score),
            f"seeds: {', '.join(str(line.seed) for line in self.lines)}",
            f"runs: {', '.join(line.run_id for line in self.lines)}",
            f"source: {self.source}{made}",
            *self.notes,
        ]
        return [comment(line) for line in lines]


def of_row(table: Table, name: str, results: Path) -> Winner:
    """The settings of a row of a table, and what is recorded of it; of a model in a fair or searched one the chosen.

    Raises:
        ConfigError: there is no such row, nothing is chosen yet, or nothing of it is recorded.
    """
    table, row, why = _row(table, name, results)
    tuning = {seed for one in (table.search, table.tuning) if one for seed in one.seeds}
    own = [line for line in records.read(results, table.name) if line.preset == FULL and line.row == row]
    lines = sorted([line for line in own if line.seed not in tuning] or own, key=lambda line: line.seed)
    if not lines:
        raise ConfigError(
            f"nothing is recorded of {table.name} {row} in {results / 'records'}: "
            f"run `orthobench reproduce {table.name} cell={table.cell(row)}`."
        )
    composed = ComposedTable(table)
    stale = {line.run_id: why_other(line, composed.settings(row, line.seed)) for line in lines}
    notes = tuple(f"stale: {run_id} was {reason}" for run_id, reason in stale.items() if reason)
    source = str(records.path_of(results, table.name))
    return Winner(f"{row} of {table.name}{why}", composed.settings(row, lines[0].seed), lines, source, notes)


def _row(table: Table, name: str, results: Path) -> tuple[Table, str, str]:
    """The table with the cells that are recorded, the row, and why it is that one."""
    if table.track == SEARCHED:
        found = searched_table(table, results)
        if name in found.table.rows:
            return found.table, name, ""
        cell = next((one for one in found.cells if one.name == name), None)
        if cell is not None and cell.state.chosen is None:
            raise ConfigError(
                f"the search of {name} in {table.name} has chosen no trial yet: "
                f"run `orthobench reproduce {table.name}` to its end."
            )
        if cell is not None:
            return found.table, f"{name}_trial{cell.state.chosen}", f": the trial chosen for {name} by validation"
        refuse_unknown([name], [one.name for one in found.cells], f"{table.name} has no row ", "")
    if table.track == FAIR and name not in table.rows:
        entries = [one for one in fair_table(table, results).entries if name in one.names]
        if len(entries) > 1:
            cases = ", ".join(sorted(other for one in entries for other in one.names if other != name))
            raise ConfigError(f"{name} has a row in {len(entries)} cases of {table.name}; name one: {cases}.")
        if entries and entries[0].rate is None:
            raise ConfigError(
                f"the rate of {name} in {table.name} is not chosen yet: "
                f"run `orthobench reproduce {table.name}` to its end."
            )
        if entries:
            rate = str(entries[0].rate)
            return table, entries[0].rows[rate], f": the rate {rate} is chosen by validation"
    trained = table.trained([name]) if table.rates and name in table.rows else [name]
    if trained != [name]:
        raise ConfigError(
            f"{name} of {table.name} is trained with {len(trained)} rates; name one: {', '.join(trained)}."
        )
    refuse_unknown([name], list(dict.fromkeys([*table.rows, *table.trained()])), f"{table.name} has no row ", "")
    return table, name, ""


def of_runs(row: OwnRow, title: str, roots: Iterable[Path]) -> Winner:
    """The settings of a row of one's own runs.

    Raises:
        ConfigError: these are refused today, or name files that the record does not vouch for.
    """
    record = row.runs[0].record
    refuse_unrecorded(record.get("sources"), recorded.named_files(record["config"]), "record.json")
    lines = sorted((run.line for run in row.runs), key=lambda line: line.seed)
    stale = dict.fromkeys(f"stale: {reason}" for run in row.runs for reason in run.stale)
    return Winner(title, recorded.settings(record["config"]), lines, ", ".join(map(str, roots)), tuple(stale))


def place(path: str) -> Path:
    """Path of a recipe: in `recipe/` beside the given one, or the given one itself where its folder has that name.

    Raises:
        ConfigError: the file has no name that `recipe=` takes, or is there already.
    """
    given = Path(path)
    if given.suffix != ".yaml" or not NAME.fullmatch(given.stem):
        raise ConfigError(f"--write {path} is no name for a recipe: use letters, digits, - and _, then .yaml.")
    found = given if given.parent.name == "recipe" else given.parent / "recipe" / given.name
    if found.exists() or found.is_symlink():
        raise ConfigError(f"{found} is there already: delete it, or choose another name.")
    return found


def write(winner: Winner, path: Path, configuration: Configuration) -> str:
    """Write the recipe; returns the command that runs it with the same seeds.

    Args:
        winner: the settings.
        path: see `place`.
        configuration: that of the model and the task.

    Raises:
        ConfigError: the recipe would give another run in this version.
    """
    settings, folder = winner.settings, path.parent.parent
    found = recipe(settings.as_dict(), configuration)
    words = [f"model={settings.model['name']}", f"task={settings.task['name']}"]
    seeds = ",".join(dict.fromkeys(str(line.seed) for line in winner.lines))
    folders = [str(one) for one in (*configuration.folders, folder)]
    options = [option for one in folders for option in ("--config-dir", one)]
    several = ["-m"] if "," in seeds else []
    told = command(["orthobench", *several, *words, *options, f"recipe={path.stem}", f"seed={seeds}"])
    head = ["# @package _global_", *winner.comments, comment(told)]
    content = "\n".join(head) + "\n" + yaml.safe_dump(found, sort_keys=False)
    _check(content, path.stem, settings, words, configuration)
    write_bytes(path, content.encode())
    return told


def _check(content: str, name: str, settings: Settings, words: Iterable[str], configuration: Configuration) -> None:
    """Read a recipe back, and refuse it where it gives another run."""
    with tempfile.TemporaryDirectory() as folder:
        write_bytes(Path(folder) / "recipe" / f"{name}.yaml", content.encode())
        files: Any = type(configuration)((*configuration.folders, Path(folder)))
        made = files.settings([*words, f"recipe={name}", f"seed={settings.run['seed']}"])
    if made.digest != settings.digest:
        raise ConfigError(
            f"a recipe of {settings.run_id} would be {made.run_id} in this version, "
            f"and is not written: run {settings.run_id} again first."
        )


def _spread(name: str, lines: Sequence[Line]) -> str:
    """`test/loss 0.12 (0.1 to 0.14) over 3 of 4 seeds, 1 diverged`; empty where it has no value."""
    known = [value for line in lines if not line.diverged and (value := line.metric(name, "best_val")) is not None]
    lost = sum(line.diverged for line in lines)
    told = f" over {len(known)} seeds{f', {lost} diverged' if lost else ''}"
    return f"{name} {in_words(known)}{told}" if known else ""
