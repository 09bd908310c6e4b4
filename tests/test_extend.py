"""The pages about cells, tasks, optimizers and tables of your own, followed word for word."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPO

PAGES = ("tutorials/your-own-cell", "how-to/add-a-task", "how-to/add-an-optimizer", "tutorials/your-own-table")
PAGE = "\n".join((REPO / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in PAGES)
FILES = re.findall(r"^`([\w./]+)`(?:, [^\n]*)?:\n\n```(?:python|yaml)\n(.*?)^```", PAGE, flags=re.M | re.S)
COMMANDS = "".join(re.findall(r"^```sh\n(.*?)^```", PAGE, flags=re.M | re.S)).splitlines()


SECOND = "".join(re.findall(r"It goes below the first one:\n\n```python\n(.*?)^```", PAGE, flags=re.M | re.S))


def test_the_page_has_its_files_and_commands() -> None:
    files = ["my_cells.py", "my_conf/model/mgu.yaml", "my_conf/model/oscillators.yaml", "my_tasks.py"]
    files += ["my_conf/task/mine.yaml", "my_optim.py", "my_conf/optimizer/lion.yaml"]
    assert [name for name, _ in FILES] == [*files, "my_conf/experiment/mine/cued_copying.yaml"]
    assert "class Oscillators(Cell)" in SECOND
    assert len(COMMANDS) == 18


@pytest.mark.slow
def test_outside_the_repository(tmp_path: Path) -> None:
    for name, text in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + (f"\n\n{SECOND}" if name == "my_cells.py" else ""), encoding="utf-8")
    program = tmp_path / "bin" / "orthobench"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m orthobench "$@"\n')
    program.chmod(0o755)
    (program.parent / "python").symlink_to(sys.executable)
    env = {**os.environ, "PYTHONPATH": f"{tmp_path}:{REPO}", "PATH": f"{program.parent}:{os.environ['PATH']}"}
    script = "set -e\n" + "\n".join(COMMANDS)
    done = subprocess.run(["sh", "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    folders = {path.parent.name.rsplit("-", 1)[0] for path in (tmp_path / "runs").glob("*/record.json")}
    models = ("mgu", "oscillators", "scornn")
    assert folders == {*(f"copying-{model}" for model in models), "mine-mgu", "cued_copying-mgu"}
    tried = len(list((tmp_path / "runs").glob("cued_copying-*/record.json")))
    assert 5 + 1 <= tried <= 5 + 3 + 1, "five rates or more, then the run that is reported"
    assert re.search(r"mgu +\d+ +6,7\d\d ", done.stdout), "its row in the comparison"


@pytest.mark.slow
def test_inside_the_repository(tmp_path: Path) -> None:
    shutil.copytree(REPO / "orthobench", tmp_path / "orthobench", ignore=shutil.ignore_patterns("__pycache__", "conf"))
    shutil.copytree(REPO / "conf", tmp_path / "conf")
    (tmp_path / "orthobench" / "cells" / "minimal_gate.py").write_text(FILES[0][1], encoding="utf-8")
    (tmp_path / "conf" / "model" / "mgu.yaml").write_text(FILES[1][1], encoding="utf-8")
    words = ["model=mgu", "task=copying", "T=50", "trainer.max_steps=2", "model.gate_bais=2"]
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-m", "orthobench"]
    wrong = subprocess.run([*command, *words], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
    assert wrong.returncode == 2
    assert "did you mean 'gate_bias'" in wrong.stderr
    right = subprocess.run([*command, *words[:-1]], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
    assert right.returncode == 0, right.stderr
