"""What a record says of a run: its code, its machine, and names and digests of its data."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import orthobench
from orthobench.config.settings import Settings
from orthobench.recording import record
from orthobench.recording.file_digest import LARGE, SETTLED_S, digest_of_file
from orthobench.recording.record import peak_bytes
from orthobench.recording.sources import SEVERAL, changed, data_of, sources
from orthobench.study.catalogue import SHIPPED
from tests.conftest import write


@pytest.fixture
def made(tmp_path: Path) -> Settings:
    return SHIPPED.settings(("model=lstm", "task=copying", "T=5", f"data_root={tmp_path / 'data'}"))


def _files(folder: Path, count: int, suffix: str) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{number}{suffix}" for number in range(count)]
    for path in paths:
        path.write_text(path.name)
    return paths


@pytest.mark.parametrize("known", [None, {}, {"data": {}}, "text"])
def test_a_run_of_ours_on_drawn_data_is_made_of_nothing_else_and_an_old_record_says_nothing(
    known: object, made: Settings
) -> None:
    assert sources(made, []) == {"plugins": {}, "yaml": {}, "data": {}}
    assert changed(sources(made, []), made) == changed(known, made) == []  # type: ignore[arg-type]


def test_data_are_named_by_their_place(made: Settings, tmp_path: Path) -> None:
    inside, outside = _files(tmp_path / "data" / "set", 1, ".csv"), _files(tmp_path / "else", 1, ".csv")
    assert set(sources(made, [*inside, *outside])["data"]) == {"set/0.csv", str(outside[0])}


def test_the_packages_own_file_is_no_data_where_an_earlier_version_said_so(made: Settings, tmp_path: Path) -> None:
    _files(tmp_path / "data" / "set", 1, ".csv")
    of_package = write(tmp_path, {"orthobench/datasets/digests.json": "0"}) / "orthobench/datasets/digests.json"
    known = sources(made, [tmp_path / "data" / "set" / "0.csv", of_package])
    assert str(of_package) in known["data"]
    of_package.write_text("another")
    assert changed(known, made) == []
    assert set(data_of(known)) == {"set/0.csv"}
    assert data_of(None) == data_of({}) == {}


def test_many_files_of_one_kind_are_one_entry(made: Settings, tmp_path: Path) -> None:
    sounds = _files(tmp_path / "data" / "timit" / "train", SEVERAL + 1, ".wav")
    labels = _files(tmp_path / "data" / "timit" / "train", SEVERAL, ".phn")
    known = sources(made, [*sounds, *labels])
    assert set(known["data"]) == {"timit/**/*.wav", *(f"timit/train/{path.name}" for path in labels)}
    assert changed(known, made) == []
    sounds[0].write_text("another")
    assert changed(known, made) == ["the data in timit/**/*.wav"]
    for path in sounds:
        path.unlink()
    assert changed(known, made) == [], "what is not there is no other"
    labels[3].write_text("another")
    assert changed(known, made) == ["the data in timit/train/3.phn"]


CPU = torch.device("cpu")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
@pytest.mark.slow
def test_the_peak_of_memory_stays_after_what_made_it() -> None:
    """Linux counts per CPU and adds up late: on a large machine these figures are wrong by 100 MB and more."""
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    held = np.ones(1 << 30, dtype=np.uint8)
    del held
    assert (peak_bytes(CPU) or 0) > resident + (1 << 29)


@pytest.mark.parametrize(("changed", "dirty"), [(None, False), ("results/a.csv", False), ("conf/a.yaml", True)])
def test_a_changed_checkout_is_said_to_be_one_unless_runs_changed_it(
    changed: str | None, dirty: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*words: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", "-C", str(tmp_path), *who, *words], check=True, capture_output=True)

    write(tmp_path, {"results/a.csv": "1\n", "conf/a.yaml": "1\n"})
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


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "orthobench" / "digests.json"


def _file(path: Path, content: bytes, when: int) -> str:
    path.write_bytes(content)
    os.utime(path, (when, when))
    return hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("size", [0, 1, LARGE - 1, LARGE, LARGE + 1])
def test_it_is_that_of_the_content(size: int, tmp_path: Path) -> None:
    expected = _file(tmp_path / "a", bytes(size), 1)
    assert [digest_of_file(tmp_path / "a") for _ in range(2)] == [expected, expected]


def test_a_kept_one_is_used_until_size_or_time_change(tmp_path: Path, kept: Path) -> None:
    path = tmp_path / "a"
    _file(path, bytes(LARGE), 1)
    digest_of_file(path)
    known = json.loads(kept.read_text())
    kept.write_text(json.dumps({name: [*stamp[:4], "kept"] for name, stamp in known.items()}))
    assert digest_of_file(path) == "kept"
    for content, when in ((b"1" * LARGE, 2), (b"1" * (LARGE + 1), 2)):
        assert _file(path, content, when) == digest_of_file(path)


def test_a_file_that_has_just_changed_is_not_kept(tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orthobench.recording.file_digest.time.time", lambda: 1 + SETTLED_S)
    _file(tmp_path / "a", bytes(LARGE), 1)
    digest_of_file(tmp_path / "a")
    assert not kept.exists()


@pytest.mark.parametrize("content", ["", "[]", '{"a": 1}', "\xff"])
def test_a_damaged_cache_is_no_harm(content: str, tmp_path: Path, kept: Path) -> None:
    kept.parent.mkdir(parents=True)
    kept.write_text(content, encoding="latin-1")
    assert _file(tmp_path / "a", bytes(LARGE), 1) == digest_of_file(tmp_path / "a")


@pytest.mark.parametrize(("name", "commit"), [("GIT_DIR", record.code()["git"]), ("PATH", None)])
def test_the_commit_is_that_of_the_checkout_or_unknown(
    name: str, commit: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, str(tmp_path))  # as in a hook of another repository, or without git
    found = record.code.__wrapped__()
    assert found["git"] == commit
    assert (found["dirty"] is None) == (commit is None)
