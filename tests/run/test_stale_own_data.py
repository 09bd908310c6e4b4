"""Files of one's own are named in records, whenever a task reads them, so that a change of theirs is told."""

import os
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orthobench.__main__ import main
from orthobench.datasets import opened
from orthobench.recording.digest import read_sealed, write_sealed
from orthobench.study.records.made_by import made_by
from orthobench.study.records.records import line
from tests import conftest

WORDS = [
    "model=gru", "model.hidden_size=4", "trainer.max_steps=4", "trainer.val_check_interval=2", "logger=none",
]  # fmt: skip
TASKS = """
import functools
import sqlite3
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from orthobench.tasks.arrays import ArrayTask


@functools.cache
def kept(path: Path) -> np.ndarray:
    return np.load(path)


class Late(ArrayTask):
    def __init__(self, **kwargs) -> None:
        super().__init__(**kwargs)
        self.output_size, self.T, self.baseline = 2, 5, {}

    @cached_property
    def x(self):
        return np.load(self.data_root / "a.npy")

    @property
    def input_size(self):
        return self.x.shape[2]

    def rows(self, split):
        return 8

    def load(self):
        x = torch.from_numpy(self.x)
        return {split: (x, (x.sum((1, 2)) > 0).long()) for split in ("train", "val", "test")}


class Early(Late):
    def __init__(self, file: str = "a.npy", **kwargs) -> None:
        self.x = kept(Path(kwargs["data_root"]) / file)
        super().__init__(**kwargs)


class Database(Late):
    @cached_property
    def x(self):
        with sqlite3.connect(self.data_root / "a.db") as base:
            (content,) = base.execute("select x from arrays").fetchone()
        return np.frombuffer(content, np.float32).reshape(8, 5, 2).copy()


class DeclaredDatabase(Database):
    def files(self):
        return [self.data_root / "a.db"]
"""
CONF = "batch_size: 4\neval_batch_size: 4\n"


def _series(scale: float) -> None:
    rng = np.random.default_rng(1)
    np.savez("my.npz", x=scale * rng.normal(size=(40, 6, 2)), y=rng.integers(0, 2, 40))


def _text(scale: float) -> None:
    Path("my.txt").write_text("the cat sat on the mat\n" * 40 + "x" * int(scale))


FORMS: dict[str, tuple[Any, list[str]]] = {
    "my.npz": (_series, ["task=series", "task.path=my.npz"]),
    "my.txt": (_text, ["task=text", "task.path=my.txt", "T=5", "task.batch_size=2", "task.eval_batch_size=2"]),
}


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Any]:
    monkeypatch.chdir(tmp_path)
    write, words = FORMS[request.param]
    write(1)
    assert main([*WORDS, *words]) == 0
    return next(tmp_path.glob("runs/*/record.json")), (lambda: main([*WORDS, *words]), write, tmp_path / request.param)


def test_a_finished_run_on_a_changed_file_is_stale(form: Any, capsys: pytest.CaptureFixture[str]) -> None:
    record, (again, write, path) = form
    assert set((read_sealed(record) or {})["sources"]["data"]) == {str(path)}
    assert again() == 0
    write(5)
    assert again() == 2
    assert f"is stale: it was made before a change of the data in {path}; undo that" in capsys.readouterr().err


def test_a_begun_run_does_not_go_on_with_another_file(form: Any, capsys: pytest.CaptureFixture[str]) -> None:
    record, (again, write, path) = form
    record.unlink()  # as if it had been killed before its test
    write(5)
    assert again() == 2
    assert f"it was begun before a change of the data in {path}" in capsys.readouterr().err


def test_a_record_of_an_earlier_version_that_names_no_data_is_found(form: Any) -> None:
    record, (again, write, _) = form
    found = read_sealed(record) or {}
    write_sealed(record, found | {"sources": found["sources"] | {"data": {}}})
    write(5)
    assert again() == 0


def test_rows_whose_seeds_saw_other_files_say_so(form: Any) -> None:
    record, (_, write, path) = form
    before = read_sealed(record) or {}
    write(5)
    assert main([*WORDS, *FORMS[path.name][1], "seed=2"]) == 0
    other = next(one for one in record.parent.parent.glob("*/record.json") if one != record)
    lines = [line(one or {}, "full", "gru", {}, 1) for one in (before, read_sealed(other))]
    assert all("on the data " in text and "other seeds on others" in text for text in made_by(lines).letters)


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"read_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(TASKS)
    names = ("early", "late", "database", "declared_database")
    conftest.write(tmp_path, {f"conf/task/{task}.yaml": CONF for task in names})
    (tmp_path / "data").mkdir()
    for seed, file in enumerate(("a.npy", "b.npy")):
        np.save(tmp_path / "data" / file, np.random.default_rng(seed).normal(size=(8, 5, 2)).astype(np.float32))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("ORTHOBENCH_PLUGINS", name)
    return name


@pytest.mark.parametrize("task", ["early", "late"])
def test_what_a_task_reads_before_its_data_are_asked_for_is_named(task: str, plugin: str, tmp_path: Path) -> None:
    size = "params=300" if task == "late" else "model.hidden_size=4"  # a budget asks for the input's width at once
    others = [word for word in WORDS if not word.startswith("model.hidden_size")]
    words = [*others, size, "--config-dir", "conf", f"task={task}", "data_root=data"]
    assert main([*words, "seed=1"]) == 0
    assert main([*words, "seed=2"]) == 0, "which in this process reads nothing, where it is cached"
    records = [read_sealed(path) or {} for path in tmp_path.glob("runs/*/record.json")]
    assert [set(one["sources"]["data"]) for one in records] == [{"a.npy"}] * 2


def _database(x: int) -> None:
    with sqlite3.connect("data/a.db") as base:
        base.execute("create table if not exists arrays (x blob)")
        base.execute("delete from arrays")
        rows = np.random.default_rng(x).normal(size=(8, 5, 2)).astype(np.float32)
        base.execute("insert into arrays values (?)", (rows.tobytes(),))


def test_what_python_does_not_open_is_declared_or_said(plugin: str, capsys: pytest.CaptureFixture[str]) -> None:
    unseen = "was not seen to open a file, and its `files` names none: a change of its data will not be noticed"
    _database(1)
    for task, said in (("database", True), ("declared_database", False)):
        words = [*WORDS, "--config-dir", "conf", f"task={task}", "data_root=data"]
        assert main(words) == 0
        assert (unseen in capsys.readouterr().out) == said
    _database(2)
    assert main(words) == 2
    assert "is stale: it was made before a change of the data in a.db; undo that" in capsys.readouterr().err


def test_another_file_that_a_setting_names_is_not_named(plugin: str, tmp_path: Path) -> None:
    words = [*WORDS, "--config-dir", "conf", "task=early", "data_root=data"]
    for file in ("a.npy", "b.npy"):
        assert main([*words, f"task.file={file}", f"runs_root={file}"]) == 0
        (record,) = tmp_path.glob(f"{file}/*/record.json")
        assert set((read_sealed(record) or {})["sources"]["data"]) == {file}


def test_only_readers_at_work_are_told(tmp_path: Path) -> None:
    class Reading(opened.Reader):
        def __init__(self) -> None:
            self.reads = opened.reads_of(Reading, str(id(self)))

        def read(self, path: Path) -> str:
            return "".join(one.read_text() for one in [path])

    opened.watch()
    path = tmp_path / "a.txt"
    path.write_text("a")
    one, other = Reading(), Reading()
    one.read(path)
    path.with_name("b.txt").write_text("b")
    path.with_name("b.txt").read_text()
    assert (one.reads, other.reads) == ({os.path.abspath(path)}, set())  # noqa: PTH100
    assert opened.read_by(one) == [path]
    assert opened.read_by(other) == [path], "which may have found it cached"
