"""A cell of the tutorial, put into the package itself."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPO
from tests.pages import blocks

FILES = [block for block in blocks(REPO / "docs" / "tutorials" / "your-own-cell.md") if block.kind == "file"]


@pytest.mark.slow
def test_inside_the_repository(tmp_path: Path) -> None:
    shutil.copytree(REPO / "orthobench", tmp_path / "orthobench", ignore=shutil.ignore_patterns("__pycache__", "conf"))
    shutil.copytree(REPO / "conf", tmp_path / "conf")
    (tmp_path / "orthobench" / "cells" / "minimal_gate.py").write_text(FILES[0].text, encoding="utf-8")
    (tmp_path / "conf" / "model" / "mgu.yaml").write_text(FILES[1].text, encoding="utf-8")
    words = ["model=mgu", "task=copying", "T=50", "trainer.max_steps=2", "model.gate_bais=2"]
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-m", "orthobench"]
    wrong = subprocess.run([*command, *words], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
    assert wrong.returncode == 2
    assert "did you mean 'gate_bias'" in wrong.stderr
    right = subprocess.run([*command, *words[:-1]], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
    assert right.returncode == 0, right.stderr
