"""All records under a folder as one table."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from orthobench.common.paths import variable
from orthobench.common.terminal import complain
from orthobench.errors import ConfigError, StorageError
from orthobench.recording.digest import read_sealed
from orthobench.recording.files import within

if TYPE_CHECKING:
    import pandas as pd


def read_all(root: str | Path) -> list[dict[str, Any]]:
    """Every readable record under `root`, by run id; an unreadable one is named and left out."""
    found = []
    for path in sorted(Path(root).glob("*/record.json")):
        try:
            record = read_sealed(within(Path(root), path.relative_to(root)))
        except StorageError as error:
            complain(f"orthobench: left out: {error}")
            continue
        if record is None:
            complain(f"{path} is not a readable record; it is left out.")
        else:
            found.append(record)
    return found


def runs_root(given: str | Path | None = None) -> Path:
    """The folder of runs that is given; else $ORTHOBENCH_RUNS, or `runs`.

    Raises:
        ConfigError: the variable's path has a variable in it that is not set.
    """
    return Path(given or variable("ORTHOBENCH_RUNS") or "runs")


def frame(root: str | Path | None = None) -> "pd.DataFrame":
    """Table with a row per run; nested keys are joined by dots, curves are left out.

    Raises:
        ConfigError: there is no such folder.
    """
    import pandas as pd

    root = runs_root(root)
    if not root.is_dir():
        raise ConfigError(f"{root} is not a folder of runs, so that there are no records in it.")

    rows = [{key: value for key, value in record.items() if key != "curve"} for record in read_all(root)]
    return pd.json_normalize(rows)
