"""The paths in a table of a `--config-dir`, which are those in its folder."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from orthobench.config.files import conf_dir
from orthobench.config.inside import placed_words
from orthobench.config.search import TrialRows
from orthobench.config.table_parts import Preset

if TYPE_CHECKING:
    from orthobench.config.table import Table


def placed_table(table: "Table", files: Iterable[tuple[Path, str]], place: str) -> "Table":
    """A table in whose overrides the paths are those in its folders, see `inside.placed`.

    Args:
        table: as its file has it.
        files: the table's file and the one that it is like, with the names of these tables.
        place: the beginning of the sentence that refuses a path.

    Raises:
        ConfigError: a path is outside of these folders.
    """
    folders = [folder for folder in (_folder(*file) for file in files) if folder is not None]
    if not folders:
        return table
    presets = {
        name: Preset(one.seeds, placed_words(one.overrides, folders, place)) for name, one in table.presets.items()
    }
    found = replace(table, common=placed_words(table.common, folders, place), presets=presets)
    written = table.rows.cells if isinstance(table.rows, TrialRows) else table.rows
    rows = {name: placed_words(words, folders, place) for name, words in written.items()}
    return found.within(found.files, rows) if isinstance(table.rows, TrialRows) else replace(found, rows=rows)


def _folder(path: Path, name: str) -> Path | None:
    """The folder of `--config-dir` that a table's file is in; null for the shipped one."""
    folder = path.parents[len(Path(name).parts)]
    return None if folder.resolve() == conf_dir() else folder
