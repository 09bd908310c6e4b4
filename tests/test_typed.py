"""Programs of a user: one that is checked strictly against the public names, and a cell put into the package."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import orthobench
from tests.conftest import REPO
from tests.pages import blocks

USER = Path(__file__).parent / "typed" / "user.py"


def test_types_are_announced() -> None:
    assert (Path(orthobench.__file__).parent / "py.typed").is_file()


@pytest.mark.slow
@pytest.mark.parametrize(("text", "wrong"), [("", 0), ("\nx: int = layers.ScoRNN(3, 16)\n", 1)], ids=["right", "wrong"])
def test_a_program_of_a_user(text: str, wrong: int, tmp_path: Path) -> None:
    (tmp_path / "user.py").write_text(USER.read_text(encoding="utf-8") + text, encoding="utf-8")
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"typeCheckingMode": "strict", "include": ["user.py"]}))
    program = shutil.which("pyright", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("pyright is not installed")
    command = [program, "--outputjson", "--pythonpath", sys.executable, "-p", str(tmp_path)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if not found.stdout.startswith("{"):
        pytest.skip(f"pyright cannot be run here: {found.stderr.strip()[-200:]}")
    told = json.loads(found.stdout)
    assert told["summary"]["errorCount"] == wrong, told["generalDiagnostics"]
    assert told["summary"]["filesAnalyzed"] == 1


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
