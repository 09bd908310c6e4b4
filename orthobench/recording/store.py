"""All records under a folder as one table."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orthobench.common.paths import variable
from orthobench.common.program import uncollected
from orthobench.common.terminal import complain
from orthobench.errors import ConfigError, StorageError
from orthobench.recording.digest import read_sealed
from orthobench.recording.files import within

if TYPE_CHECKING:
    import pandas as pd


def read_all(root: str | Path) -> list[dict[str, Any]]:
    """Every readable record under `root`, by run id; an unreadable one is named and left out."""
    with uncollected():
        return list(_each(root))


def _each(root: str | Path) -> Iterator[dict[str, Any]]:
    for path in sorted(Path(root).glob("*/record.json")):
        try:
            record = read_sealed(within(Path(root), Path(path.parent.name, path.name)))
        except StorageError as error:
            complain(f"orthobench: left out: {error}")
            continue
        if record is None:
            complain(f"{path} is not a readable record; it is left out.")
        else:
            yield record


def runs_root(given: str | Path | None = None) -> Path:
    """The folder of runs that is given; else $ORTHOBENCH_RUNS, or `runs`.

    Raises:
        ConfigError: the variable's path has a variable in it that is not set.
    """
    return Path(given or variable("ORTHOBENCH_RUNS") or "runs")


def folder_of(run: str | Path, root: str | None = None) -> Path:
    """The folder of a run that is named by its folder, or by its name in the folder of runs `root`.

    Raises:
        ConfigError: there is none.
    """
    runs = runs_root(root)
    found = next((path for path in (Path(run), runs / run) if (path / "config.yaml").is_file()), None)
    if found is None:
        places = " nor ".join(dict.fromkeys(map(str, (Path(run), runs / run))))
        raise ConfigError(f"{run} is no run: there is no config.yaml in {places}; runs_root= names a folder of runs.")
    return found


def frame(root: str | Path | None = None) -> "pd.DataFrame":
    """Table with a row per run; nested keys are joined by dots, curves are left out.

    Raises:
        ConfigError: there is no such folder.
    """
    import pandas as pd

    root = runs_root(root)
    if not root.is_dir():
        raise ConfigError(f"{root} is not a folder of runs, so that there are no records in it.")

    with uncollected():
        return pd.DataFrame([_flat(record) for record in _each(root)])


def _flat(record: dict[str, Any]) -> dict[str, Any]:
    """A record without its curves: what has no keys below it first, then nested keys, joined by dots.

    It is what `pandas.json_normalize` makes, which takes longer than reading the file.
    """
    nested = {key: value for key, value in record.items() if isinstance(value, dict) and key != "curve"}
    found = {key: value for key, value in record.items() if not isinstance(value, dict)}
    for key, value in nested.items():
        _add(found, key, value)
    return found


def _add(found: dict[str, Any], name: str, node: dict[str, Any]) -> None:
    for key, value in node.items():
        if isinstance(value, dict):
            _add(found, f"{name}.{key}", value)
        else:
            found[f"{name}.{key}"] = value
