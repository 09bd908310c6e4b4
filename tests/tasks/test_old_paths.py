"""The import paths that a user's plug-in has from before the tasks had folders."""

import importlib

import pytest

from orthobench.tasks.drawn.adding import Adding
from orthobench.tasks.real import series


def test_an_old_path_has_the_same_class() -> None:
    assert importlib.import_module("orthobench.tasks.adding").Adding is Adding
    assert importlib.import_module("orthobench.tasks.series").Series is series.Series


def test_a_name_that_no_folder_has_is_missing_as_any() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"No module named .orthobench.tasks.addign"):
        importlib.import_module("orthobench.tasks.addign")
