"""What a record says of the code that made it."""

import subprocess
from pathlib import Path

import pytest

from orthobench.recording import record


@pytest.mark.parametrize(("changed", "dirty"), [(None, False), ("results/a.csv", False), ("conf/a.yaml", True)])
def test_a_changed_checkout_is_said_to_be_one_unless_runs_changed_it(
    changed: str | None, dirty: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*words: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", "-C", str(tmp_path), *who, *words], check=True, capture_output=True)

    for name in ("results/a.csv", "conf/a.yaml"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("1\n")
    git("init")
    git("add", ".")
    git("commit", "-m", "first")
    if changed:
        (tmp_path / changed).write_text("2\n")
    monkeypatch.setattr(record, "__file__", str(tmp_path / "orthobench" / "recording" / "record.py"))
    assert record.code.__wrapped__()["dirty"] is dirty
