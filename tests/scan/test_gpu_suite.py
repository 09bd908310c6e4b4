"""The tests for a GPU, looked at without one: how many there are, and that they need no optional package."""

import os
import subprocess
import sys

import pytest

from tests.conftest import REPO

LISTED = """
import sys
sys.modules["wandb"] = sys.modules["geotorch"] = None
import pytest
sys.exit(pytest.main(["--collect-only", "-q", "-m", "gpu", "-p", "no:cacheprovider", *sys.argv[1:]]))
"""


@pytest.mark.slow
def test_they_are_few_and_need_neither_wandb_nor_geotorch() -> None:
    """184 tests took 54 s with eight processes on an H200, compilation included."""
    files = sorted({str(path) for path in (REPO / "tests").rglob("test_*.py") if "mark.gpu" in path.read_text()})
    done = subprocess.run(
        [sys.executable, "-c", LISTED, *files], cwd=REPO, env=dict(os.environ), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-2000:]
    assert 60 <= sum("::" in line for line in done.stdout.splitlines()) <= 250
