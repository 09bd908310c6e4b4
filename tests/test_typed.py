"""A typed program of a user is checked strictly against the public names."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import orthobench

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
