"""`orthobench inspect`: what it prints and writes, and what it refuses."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from orthobench.__main__ import main
from tests.run.finished import finished


def test_a_table_a_file_and_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, record = finished(tmp_path, "model=scornn", "task=copying", "T=5", "model.layers=2")
    capsys.readouterr()
    assert main(["inspect", folder.name, f"runs_root={tmp_path}", "--sequences=3"]) == 0
    printed = capsys.readouterr().out
    assert "3 sequences of 25 steps" in printed
    for word in ("eigenvalue modulus", "singular values", "Lyapunov", "norm of dL/dh_t"):
        assert word in printed
    found = json.loads((folder / "evaluations" / "inspect.json").read_text())
    assert (found["run_id"], found["sequences"], len(found["layers"])) == (folder.name, 3, 2)
    distances = [line.split()[0] for line in printed.splitlines() if line.startswith("  ")][-7:]
    assert distances == ["0", "1", "2", "5", "10", "20", "24"]
    ElementTree.fromstring((folder / "evaluations" / "inspect.svg").read_text())
    assert json.loads((folder / "record.json").read_text()) == record
