"""What a record says of the code that made it."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

import orthobench
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


OWN = {"version": "0.2.0", "git": None, "dirty": None}
CHECKOUT = {"version": "0.2.0", "git": "a" * 40, "dirty": False}


@pytest.mark.parametrize(
    ("here", "made", "env", "expected"),
    [
        (OWN, OWN, {}, None),
        (OWN, {**OWN, "version": "0.1.0"}, {}, "version 0.1.0"),
        (OWN, {"git": None, "dirty": None}, {"orthobench": "0.1.0"}, "version 0.1.0"),
        (OWN, {"git": None, "dirty": None}, {"orthobench": "0.2.0"}, None),
        (OWN, {"git": None, "dirty": None}, {}, "version unknown"),
        (OWN, CHECKOUT, {}, "commit aaaaaaaaaa"),
        (CHECKOUT, CHECKOUT, {}, None),
        (CHECKOUT, {**CHECKOUT, "version": "0.1.0"}, {}, None),
        (CHECKOUT, {**CHECKOUT, "dirty": True}, {}, "commit aaaaaaaaaa with local changes"),
        (CHECKOUT, {**CHECKOUT, "git": "b" * 40}, {}, "commit bbbbbbbbbb"),
        (CHECKOUT, OWN, {}, "version 0.2.0"),
    ],
)
def test_other_code_is_another_commit_or_without_one_another_version(
    here: dict[str, Any], made: dict[str, Any], env: dict[str, Any], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record, "code", lambda: here)
    assert record.other_code({"code": made, "env": env}) == expected


def test_outside_a_checkout_the_version_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "__file__", str(tmp_path / "orthobench" / "recording" / "record.py"))
    found = record.code.__wrapped__()
    assert (found["version"], found["git"], found["dirty"]) == (orthobench.__version__, None, None)
