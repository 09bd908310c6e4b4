"""Rows of records that are kept beside them: never another than the record itself gives."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from orthobench.errors import ConfigError, StorageError
from orthobench.recording import kept_rows, store
from orthobench.recording.digest import write_sealed

NAMES = ("a", "b", "c", "d")


def record(name: str, **values: Any) -> dict[str, Any]:
    plain = {"schema": 2, "status": "done", "model": "rnn", "task": "t", "seed": 1, "steps": 1, "run_id": name}
    more = {"lengths": {"5": {"a": 1.5}}} if name == "c" else {"reason": None}
    return plain | {"metrics": {"last": {"a": 0.1, "b": None}}, "config": {"sizes": [1, 2]}} | more | values


def written(root: Path, name: str, **values: Any) -> Path:
    write_sealed(path := root / name / "record.json", record(name, **values))
    return path


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four runs, whose rows are kept."""
    monkeypatch.setattr(kept_rows, "LEAST", 1)
    monkeypatch.setattr(kept_rows, "SETTLED_S", -60.0)
    for name in NAMES:
        written(tmp_path, name)
    store.frame(tmp_path)
    assert (tmp_path / kept_rows.NAME).is_file()
    return tmp_path


def anew(root: Path) -> pd.DataFrame:
    """What the records say, with nothing kept."""
    copy = root.parent / f"{root.name}-copy"
    shutil.copytree(root, copy, symlinks=True)
    (copy / kept_rows.NAME).unlink()
    return store.frame(copy)


def test_what_is_kept_is_what_is_read(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = anew(runs)
    monkeypatch.setattr(store, "read_sealed", None)
    pd.testing.assert_frame_equal(store.frame(runs), found)


def test_a_change_of_the_same_size_and_time_is_seen(runs: Path) -> None:
    before, path = (runs / "b" / "record.json").stat(), runs / "b" / "record.json"
    content = written(runs.parent / "other", "b", seed=7).read_bytes()
    assert len(content) == before.st_size
    with path.open("r+b") as file:  # the same file, not another of its name
        file.write(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert store.frame(runs).set_index("run_id")["seed"].to_dict() == {"a": 1, "b": 7, "c": 1, "d": 1}


def test_a_run_that_is_replaced_or_renamed_is_read(runs: Path) -> None:
    written(runs, "a", seed=8)
    (runs / "c").rename(runs / "d2")
    shutil.rmtree(runs / "d")
    (runs / "b").rename(runs / "d")
    pd.testing.assert_frame_equal(store.frame(runs), anew(runs))
    assert list(store.frame(runs)["run_id"]) == ["a", "b", "c"]


def test_runs_that_are_gone_or_added_or_half_written(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(runs / "a")
    (runs / "b" / "record.json").unlink()
    path = runs / "c" / "record.json"
    path.write_bytes(path.read_bytes()[:-40])
    written(runs, "e", seed=9)
    (runs / "f").mkdir()
    (runs / "g").write_text("no folder")
    capsys.readouterr()
    assert list(store.frame(runs)["run_id"]) == ["d", "e"]
    assert capsys.readouterr().err.count("is not a readable record") == 1
    assert list(store.frame(runs)["run_id"]) == ["d", "e"]
    assert capsys.readouterr().err.count("is not a readable record") == 1, "it is told each time"


@pytest.mark.parametrize("which", ["a", "a/record.json"])
def test_a_link_is_left_out_though_the_run_was_read(
    which: str, runs: Path, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    away = tmp_path_factory.mktemp("away") / "moved"
    (runs / which).rename(away)
    (runs / which).symlink_to(away)
    assert list(store.frame(runs)["run_id"]) == ["b", "c", "d"]
    assert "is a link" in capsys.readouterr().err


@pytest.mark.parametrize("damage", ["flipped", "cut", "empty", "of other code", "a list", "a link"])
def test_what_is_kept_and_damaged_is_not_used(damage: str, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = runs / kept_rows.NAME
    content = path.read_bytes()
    wrong = content.replace(b"0.1", b"0.9")
    assert wrong != content
    if damage == "of other code":
        monkeypatch.setattr(kept_rows, "_code", lambda: "other")
    elif damage == "a link":
        path.rename(path.with_name("elsewhere"))
        path.symlink_to("elsewhere")
    else:
        path.write_bytes({"flipped": wrong, "cut": content[:-9], "empty": b"", "a list": b"[]\n[]"}[damage])
    assert kept_rows.KeptRows(runs)._known == {}
    assert set(store.frame(runs)["metrics.last.a"]) == {0.1}
    assert not path.is_symlink()
    assert len(kept_rows.KeptRows(runs)._known) == 4, "it is written anew"


def test_a_record_of_just_now_and_those_of_a_small_folder_are_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, "a")
    store.frame(tmp_path)
    monkeypatch.setattr(kept_rows, "LEAST", 1)
    store.frame(tmp_path)
    assert not (tmp_path / kept_rows.NAME).exists()


def test_few_new_runs_are_read_each_time_and_nothing_is_written(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_rows, "LEAST", 2)
    before = (runs / kept_rows.NAME).read_bytes()
    written(runs, "e")
    assert len(store.frame(runs)) == 5
    assert (runs / kept_rows.NAME).read_bytes() == before


def test_a_folder_that_refuses_is_read_all_the_same(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise StorageError("full")

    (runs / kept_rows.NAME).unlink()
    monkeypatch.setattr(kept_rows, "write_bytes", refuse)
    assert len(store.frame(runs)) == 4
    assert not (runs / kept_rows.NAME).exists()


def test_the_digest_is_over_all_that_is_kept(runs: Path) -> None:
    head, _, body = (runs / kept_rows.NAME).read_bytes().partition(b"\n")
    assert set(json.loads(head)) == {"code", "sha256"}
    assert sorted(name for part in json.loads(body) for name in part["runs"]) == list(NAMES)


def test_what_a_killed_reader_left_is_removed_by_the_next_that_keeps_rows(runs: Path) -> None:
    (runs / kept_rows.NAME).unlink()
    old, young = (runs / f".{kept_rows.NAME}.{mark}.tmp" for mark in ("00000000", "11111111"))
    for left in (old, young):
        left.write_bytes(b"torn")
    os.utime(old, (0, 0))
    store.frame(runs)
    assert (runs / kept_rows.NAME).is_file()
    assert (old.exists(), young.exists()) == (False, True), "the younger one may be of a reader at work"


@pytest.mark.parametrize("name", ["aa-rnn-0123456780", "AA-RNN-0123456789"])
def test_a_run_of_a_similar_name_is_told_whatever_the_case(name: str, tmp_path: Path) -> None:
    for run in ("aa-rnn-0123456789", "bb-lstm-9876543210"):
        (tmp_path / run).mkdir()
        (tmp_path / run / "config.yaml").touch()
    with pytest.raises(ConfigError, match="; did you mean aa-rnn-0123456789"):
        store.folder_of(tmp_path / name)
