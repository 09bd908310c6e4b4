"""The journal of a tuning that is not what it should be is named, with exit 6, before any trial is begun."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orthobench.__main__ import main

pytest.importorskip("optuna")

WORDS = ["tune", "model=rnn", "task=copying", "T=5", "recipe=none", "model.hidden_size=4", "trainer.max_steps=1"]
WORDS += ["task.val_size=2", "task.test_size=2", "optimizer.lr=float(0.001,0.1)", "--trials", "1"]
RANGE = json.dumps({"name": "FloatDistribution", "attributes": {"step": None, "low": 0.001, "high": 0.1, "log": False}})
START = {"op_code": 4, "worker_id": "w", "study_id": 0, "datetime_start": "2026-01-01T00:00:00.000000"}
TRIED = {"op_code": 5, "worker_id": "w", "trial_id": 0, "param_name": "optimizer.lr", "distribution": RANGE}
ENDED = {"op_code": 6, "worker_id": "w", "trial_id": 0, "state": 1, "datetime_complete": START["datetime_start"]}


def named(run_id: Any) -> dict[str, Any]:
    return {"op_code": 8, "worker_id": "w", "trial_id": 0, "user_attr": {"run_id": run_id}}


LINES: dict[str, list[Any]] = {
    "no JSON": ["x"],
    "half a line": ['{"op_code": 4, "worker'],
    "a list": [[1]],
    "nothing in it": [{}],
    "an unknown operation": [{"op_code": 99, "worker_id": "w"}],
    "an operation that is a word": [{"op_code": "x", "worker_id": "w"}],
    "no worker": [{"op_code": 4}],
    "a date that is none": [START | {"datetime_start": "x"}],
    "another setting": [START, TRIED | {"param_name": "optimizer.x", "param_value_internal": 0.01}],
    "a value out of range": [START, TRIED | {"param_value_internal": 7.0}],
    "a distribution that is none": [START, TRIED | {"distribution": "x", "param_value_internal": 0.01}],
    "a score that is a word": [START, TRIED | {"param_value_internal": 0.01}, named("x"), ENDED | {"values": ["x"]}],
    "a score that is NaN": [
        START,
        TRIED | {"param_value_internal": 0.01},
        named("x"),
        ENDED | {"values": [float("nan")]},
    ],
    "a trial without a run": [START, TRIED | {"param_value_internal": 0.01}, ENDED | {"values": [1.0]}],
    "a run that leads out": [START, named("../../x")],
    "a run that is a list": [START, named([1])],
    "deep": ["[" * 100_000],
    "deep in a line": ['{"op_code": ' + "[" * 100_000],
}
FILES: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a folder": Path.mkdir,
    "20 GB of zeros": lambda path: (path.touch(), os.truncate(path, 20 << 30)),
    "zeros": lambda path: path.write_bytes(bytes(1000) + b"\n"),
    "bytes": lambda path: path.write_bytes(bytes(range(256)) + b"\n"),
    "a link to a device": lambda path: path.symlink_to("/dev/zero"),
    "a link elsewhere": lambda path: path.symlink_to(path.parents[2] / "elsewhere"),
}


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, bytes]:
    """The name of the study, and the first lines of its journal."""
    home = tmp_path_factory.mktemp("begun")
    assert main([*WORDS, f"runs_root={home}"]) == 0
    (path,) = home.glob("tune-*/journal.log")
    lines = path.read_bytes().splitlines(keepends=True)
    return path.parent.name, b"".join(line for line in lines if json.loads(line)["op_code"] < 4)


@pytest.fixture
def journal(begun: tuple[str, bytes], tmp_path: Path) -> Path:
    path = tmp_path / "runs" / begun[0] / "journal.log"
    path.parent.mkdir(parents=True)
    return path


def refused(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*WORDS, f"runs_root={path.parents[1]}"]) == 6
    (line,) = (line for line in capsys.readouterr().err.splitlines() if line)
    assert str(path.parents[1]) in line
    assert len(line) < 1000
    assert {one.name for one in path.parents[1].iterdir()} == {path.parent.name}, "no run was begun"


@pytest.mark.sampled(8)
@pytest.mark.parametrize("kind", LINES)
def test_lines(kind: str, begun: tuple[str, bytes], journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = [one if isinstance(one, str) else json.dumps(one) for one in LINES[kind]]
    journal.write_bytes(begun[1] + "".join(f"{text}\n" for text in texts).encode())
    refused(journal, capsys)


@pytest.mark.parametrize("kind", FILES)
def test_files(kind: str, journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    FILES[kind](journal)
    refused(journal, capsys)
    assert not (journal.parents[2] / "elsewhere").exists()
