"""The layout of the package: rooms that know only what lies below them, one name for one thing, short files."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

from tests.faults.conftest import REPO

PACKAGE = Path(__file__).resolve().parents[1] / "orthobench"
FILES = sorted(PACKAGE.rglob("*.py"))
BELOW = {  # what a room may import, beside the ground
    "common": set(),
    "datasets": set(),
    "parametrizations": set(),
    "config": set(),
    "tasks": {"datasets"},
    "cells": {"parametrizations"},
    "recording": {"config"},
    "scan": {"cells", "parametrizations"},
    "models": {"cells", "config", "parametrizations", "scan", "tasks"},
    "layers": {"cells", "config", "models", "parametrizations", "scan"},
    "report": {"config", "recording", "run", "study"},
    "run": {"cells", "config", "models", "parametrizations", "recording", "scan", "tasks"},
    "testing": {"cells", "models", "parametrizations", "run", "scan", "tasks"},
    "ensemble": {"config", "models", "parametrizations", "recording", "run", "scan", "tasks"},
    "launch": {"config", "recording"},
    "study": {"config", "ensemble", "launch", "models", "recording", "run", "tasks"},
}
GROUND = {"errors", "common"}


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def imports(path: Path) -> set[str]:
    """The modules of the package that a file imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "orthobench":
            names = (
                f"{node.module}.{alias.name}" if node.module == "orthobench" else str(node.module)
                for alias in node.names
            )
            found |= set(names)
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith("orthobench")}
    return found


@pytest.mark.parametrize("name", BELOW)
def test_a_room_imports_only_what_lies_below_it(name: str) -> None:
    allowed = BELOW[name] | GROUND | {name}
    wrong = {
        f"{path.relative_to(PACKAGE)} imports {module}"
        for path in (PACKAGE / name).rglob("*.py")
        for module in imports(path)
        if room(module) not in allowed
    }
    assert not wrong


def test_the_rooms_are_those_that_are_known() -> None:
    rooms = {path.name for path in PACKAGE.iterdir() if path.is_dir() and list(path.glob("*.py"))}
    assert rooms - {"bench", "verbs"} == set(BELOW)
    assert {path.stem for path in PACKAGE.glob("*.py")} == GROUND - {"common"} | {"__init__", "__main__"}


def test_the_order_of_the_rooms_has_no_circle() -> None:
    left = {name: set(below) for name, below in BELOW.items()}
    while left:
        free = {name for name, below in left.items() if not below & set(left)}
        assert free, f"a circle among {sorted(left)}"
        left = {name: below for name, below in left.items() if name not in free}


def test_no_class_has_the_name_of_another() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in (path for path in FILES if path.parent.name != "layers"):  # users know a layer by its paper's name
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            targets = [node.name] if isinstance(node, ast.ClassDef) else []
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                targets = [node.targets[0].id] if not node.targets[0].id.isupper() else []
            for name in targets:
                if name[0].isupper():
                    places[name].append(str(path.relative_to(PACKAGE)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_file_is_long(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 350


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_function_is_long(path: Path) -> None:
    """Lines from `def` to the last one, the docstring among them."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    lengths = {node.name: (node.end_lineno or 0) - node.lineno + 1 for node in functions}
    assert {name: length for name, length in lengths.items() if length > 60} == {}


def test_folders_are_those_of_configuration_files() -> None:
    """A parameter `folders` means the folders of configuration files, which few functions know."""
    found = {
        f"{path.relative_to(PACKAGE)}: {node.name}"
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
        and "folders" in (one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs))
    }
    assert len(found) <= 6
    assert {one.partition(":")[0] for one in found} <= {
        "config/configuration.py", "config/places.py", "study/tables/table.py"
    }  # fmt: skip


OPENERS = ("What", "Whether", "Which", "One", "Where", "Of", "As", "Within", "How")


def test_a_docstring_begins_with_a_verb_or_a_noun() -> None:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found = []
    for path in FILES:
        nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, kinds)]
        texts = [(ast.get_docstring(node) or "").split(maxsplit=1) for node in nodes]
        found += [
            f"{path.relative_to(PACKAGE)}: {' '.join(text)[:60]}" for text in texts if text and text[0] in OPENERS
        ]
    assert found == []


SOURCES = sorted((REPO / "orthobench").rglob("*.py"))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(REPO)))
def test_nothing_unsafe_is_read(path: Path) -> None:
    text = path.read_text()
    for call in re.findall(r"torch\.load\((?:[^()]|\([^()]*\))*\)", text):
        assert "weights_only=True" in call, call
    assert not re.search(r"^\s*(import|from) (pickle|dill|cloudpickle|shelve)\b", text, re.MULTILINE)
    assert not re.search(
        r"allow_pickle=True|yaml\.(load|unsafe_load|full_load)\(|\b(eval|exec)\(", text.replace(".eval(", "")
    )
