"""Odd names of files on the command line."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st

from orthobench.config.words import quoted
from orthobench.errors import ConfigError
from orthobench.study.catalogue import SHIPPED
from tests.outside import Draw, accepted, kind
from tests.outside.words import NAMES

NAMED = NAMES.map(lambda name: name.strip()).filter(
    lambda name: name not in ("", ".", "..") and not {"/", "\0"} & {*name}
)


@kind
def paths(draw: Draw, folder: Path) -> None:
    """A file has its own place, whatever its name; as it stands, the word means this file or is refused."""
    name = draw(NAMED) + draw(st.sampled_from([".npz", "$HOME.npz", "{x}.npz"]))
    path = folder / name
    with path.open("wb") as file:
        np.savez(file, x=np.arange(30.0).reshape(10, 3), y=np.arange(10) % 2)
    word = str(path).replace("$", "$$")
    if "${" in name:
        with pytest.raises(ConfigError, match="in front of a brace cannot be given here"):
            SHIPPED.settings(["model=gru", "task=series", f"task.path={quoted(word)}"])
        return
    with accepted():
        made = SHIPPED.settings(["model=gru", "task=series", f"task.path={quoted(word)}", "runs_root=here"])
    assert made.task["path"] == os.path.realpath(path)
    assert SHIPPED.settings(["model=gru", "task=series", f"task.path={word}"]).task["path"] == os.path.realpath(path)
