"""The import paths that a user's plug-in has from before modules moved."""

import importlib

import pytest

from orthobench.tasks.drawn.adding import Adding
from orthobench.tasks.real import series


def test_an_old_path_has_the_same_class() -> None:
    assert importlib.import_module("orthobench.tasks.adding").Adding is Adding
    assert importlib.import_module("orthobench.tasks.series").Series is series.Series


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("schema", "common.schema", "Positive"), ("registry", "common.registry", "find"),
        ("optim", "models.optim", "Adam"), ("schedules", "models.schedules", "Linear"),
        ("initializers", "parametrizations.initializers", "uniform"),
    ],
)  # fmt: skip
def test_what_a_cell_or_a_rule_of_ones_own_imports(old: str, new: str, name: str) -> None:
    found = importlib.import_module(f"orthobench.{old}")
    assert getattr(found, name) is getattr(importlib.import_module(f"orthobench.{new}"), name)


def test_a_name_that_no_folder_has_is_missing_as_any() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"No module named .orthobench.tasks.addign"):
        importlib.import_module("orthobench.tasks.addign")
