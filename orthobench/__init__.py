"""orthobench: which recurrent cell holds memory best, at what cost, beside the published number."""

import re
import sys

if sys.version_info < (3, 11):  # noqa: UP036, an old Python must be able to read this file
    _OLD = f"orthobench needs Python 3.11 or newer, and this is {sys.version.split()[0]} ({sys.executable})."
    if sys.argv[:1] == ["-m"]:
        sys.stderr.write(f"{_OLD}\n")
        sys.exit(2)
    raise ImportError(_OLD)

from typing import TYPE_CHECKING, Any, Literal

from orthobench.common import old_paths as old_paths
from orthobench.common.version import __version__ as __version__

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor

    from orthobench.cells.base import Cell, State
    from orthobench.run.load import Finished
    from orthobench.run.run import Run


def build(*overrides: str, config_dir: "str | Any | None" = None) -> "Run":
    """Build one run from the words of the command line.

        exp = orthobench.build("model=scornn", "task=copying", "T=200", "seed=1")

    Args:
        *overrides: the words.
        config_dir: a folder with configuration files of your own, as `--config-dir`.

    Raises:
        orthobench.errors.ConfigError: an unknown key, a wrong type or a value out of range.
    """
    from orthobench.common.paths import folder
    from orthobench.errors import ConfigError
    from orthobench.run.run import Run
    from orthobench.study.catalogue import Catalogue

    wrong = next((word for word in overrides if not isinstance(word, str)), None)
    if wrong is not None:
        raise ConfigError(f'build takes words such as "model=gru", each an argument of its own: here is {wrong!r}.')
    several = next((word for word in overrides if re.match(r"[\w.]+=[^\s'\"]+\s+[\w.]+=", word)), None)
    if several is not None:
        raise ConfigError(f"build takes each word as an argument of its own, and {several!r} is several: split it.")
    files = Catalogue(() if config_dir is None else (folder(config_dir, "config_dir"),))
    return Run.fitted(files.settings(overrides))


def load(run: "str | Any", which: 'Literal["best", "last"]' = "best") -> "Finished":
    """Open a finished run, named by its folder or by its name under $ORTHOBENCH_RUNS or `runs`.

        run = orthobench.load("runs/copying-scornn-93fdd1b366")
        run.model, run.task, run.record, run.settings

    Args:
        run: its folder or its name; or a folder that `orthobench export RUN --format safetensors` wrote.
        which: the weights that were best by validation, or the last ones.

    Raises:
        orthobench.errors.ConfigError: there is no such run, or it is not done.
        orthobench.errors.StorageError: a file in its folder is damaged or another run's.
    """
    from orthobench.common.paths import folder
    from orthobench.run.load import load as of_run
    from orthobench.run.shared import is_shared, opened

    place = folder(run, "run")
    return opened(place, which) if is_shared(place) else of_run(place, which)


def recurrence(cell: "Cell", x: "Tensor", h0: "State | None" = None, engine: str = "auto") -> "tuple[Tensor, State]":
    """Run a cell over sequences.

    Args:
        cell: the cell, such as `exp.model.cells[0]`.
        x: inputs (B, T, I), or tokens (B, T).
        h0: initial state, a tuple of tensors (B, N); the cell's own when None.
        engine: `auto`, or the name of an engine; see `orthobench.scan.recurrence`.

    Returns:
        All hidden states (B, T, N), or the outputs (B, T, F) of a cell whose steps return them; and the final state.

    Raises:
        orthobench.errors.ConfigError: the engine cannot run the cell.
        ValueError: x or h0 has another shape, type or device than the cell needs.
    """
    from orthobench.scan import recurrence as run

    return run(cell, x, h0, engine)


def records(root: "str | Any | None" = None) -> "pd.DataFrame":
    """Table of the runs under `root`, a row each; nested keys are joined by dots, as in
    `metrics.best_val.test/loss`.

    What is read of a thousand records and more is kept beside them, in `.records.json`, until their files change.

    Args:
        root: a folder of runs; $ORTHOBENCH_RUNS, or `runs`, when None.

    Raises:
        orthobench.errors.ConfigError: there is no such folder.
        orthobench.errors.StorageError: it cannot be read.
    """
    from orthobench.common.paths import folder
    from orthobench.recording.store import frame

    return frame(None if root is None else folder(root, "root"))
