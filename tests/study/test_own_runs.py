"""A user's own runs: what counts, and what is said of the others."""

from pathlib import Path
from typing import Any

import pytest

from orthobench.errors import ConfigError
from orthobench.recording.claim import Claim
from orthobench.study.records.own_runs import read, text
from tests.own_runs import run

WORDS = ("model=gru", "task=adding", "T=20")


def test_a_finished_run_has_its_settings_and_its_score(tmp_path: Path) -> None:
    folder = run(tmp_path, *WORDS, "optimizer.lr=0.01", val=0.3)
    (found,) = read([tmp_path]).finished
    assert found.line.run_id == folder.name
    assert found.settings["optimizer.lr"] == 0.01
    assert (found.score.name, found.score.direction, found.stale) == ("test/loss", "lower", ())
    assert read([folder]).finished[0].line.run_id == folder.name, "a folder that is a run"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"status": "stopped", "reason": "stopped by SIGTERM at step 4"}, "stopped by SIGTERM at step 4"),
        ({"status": "failed", "reason": "out of memory"}, "failed, out of memory"),
        ({"run_id": "adding-gru-0000000000"}, "another run, adding-gru-0000000000"),
        ({"parameters": None}, "of another version"),
    ],
)
def test_what_is_not_finished_is_told(tmp_path: Path, changes: dict[str, Any], told: str) -> None:
    run(tmp_path, *WORDS)
    folder = run(tmp_path, *WORDS, "seed=2", **changes)
    found = read([tmp_path])
    assert len(found.finished) == 1
    ((place, why),) = found.left_out
    assert place == folder
    assert told in why


def test_damaged_missing_and_running_records_are_told_apart(tmp_path: Path) -> None:
    damaged = run(tmp_path, *WORDS) / "record.json"
    damaged.write_text(damaged.read_text().replace('"steps": 10', '"steps": 11'))
    killed = tmp_path / "adding-gru-killed"
    killed.mkdir()
    (killed / "config.yaml").touch()
    (tmp_path / "figures").mkdir()
    with Claim(tmp_path / "adding-gru-running"):
        told = read([tmp_path]).left_out
    assert [why for _, why in told] == [
        "left out, record.json is damaged",
        "left out, it has no record, as if it had been killed",
        "left out, it is running now",
    ]


def test_a_run_counts_once(tmp_path: Path) -> None:
    run(tmp_path / "a", *WORDS)
    run(tmp_path / "b", *WORDS)
    found = read([tmp_path / "a", tmp_path / "b"])
    assert len(found.finished) == 1
    ((_, why),) = found.left_out
    assert "counted once" in why


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"code": {"version": "0", "git": "f" * 40, "dirty": False}}, "other code, commit ffffffffff"),
        ({"identity": "0" * 64}, "another run today"),
        ({"sources": {"plugins": {}, "yaml": {}, "data": {"mine.npz": "0" * 64}}}, "the data in mine.npz has changed"),
    ],
)
def test_a_stale_run_says_why(tmp_path: Path, changes: dict[str, Any], told: str) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "mine.npz").write_bytes(b"other")
    run(tmp_path / "runs", *WORDS, f"data_root={tmp_path / 'data'}", **changes)
    (found,) = read([tmp_path / "runs"]).finished
    assert told in " ".join(found.stale)


def test_runs_are_chosen_by_their_settings(tmp_path: Path) -> None:
    for lr in ("1e-2", "1e-3", "1e-4"):
        run(tmp_path, *WORDS, f"optimizer.lr={lr}")
    run(tmp_path, "model=lstm", *WORDS[1:])
    found = read([tmp_path])
    assert len(found.of(["model=gru"]).finished) == 3
    assert [r.settings["optimizer.lr"] for r in found.of(["optimizer.lr=0.01,0.001", "model=gru"]).finished] != []
    assert len(found.of(["optimizer.lr=0.01,1e-4", "model=gru"]).finished) == 2
    with pytest.raises(ConfigError, match=r"did you mean 'optimizer\.lr'"):
        found.of(["optimizr.lr=0.01"])
    with pytest.raises(ConfigError, match=r"there are gru, lstm"):
        found.of(["model=scornn"])


@pytest.mark.parametrize(("folder", "told"), [("nowhere", "is not a folder"), (".", "has no runs")])
def test_no_runs(tmp_path: Path, folder: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        read([tmp_path / folder])


@pytest.mark.parametrize(
    ("value", "shown"), [(1e-3, "0.001"), (20, "20"), (None, "null"), (True, "true"), (["c", "r"], "[c, r]")]
)
def test_a_value_has_one_text(value: Any, shown: str) -> None:
    assert text(value) == shown
