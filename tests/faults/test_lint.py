"""What no file of the package may do."""

import re
from pathlib import Path

import pytest

from tests.faults.conftest import REPO

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
