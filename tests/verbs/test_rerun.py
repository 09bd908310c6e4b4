"""`orthobench rerun`: a recorded run is made again, and its numbers are compared with the record."""

from pathlib import Path

import pytest

from orthobench.__main__ import main
from orthobench.study.records import records
from orthobench.study.records.drift import BITWISE, DIFFERENT, ROUNDED, drifts, verdict
from orthobench.study.records.records import Line
from tests.conftest import Refused, write

TABLE = """
track: published
seeds: [1, 2]
margin: {}
unstated: []
common: [task=adding, T=5, recipe=none, model.hidden_size=4, task.val_size=4, task.test_size=4, task.batch_size=2,
  trainer.max_steps=3, trainer.val_check_interval=1]
cells: {rnn: [model=rnn], gru: [model=gru]}
presets: {}
"""


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, {"mine/experiment/mine/small.yaml": TABLE})
    assert main(["reproduce", "mine/small", "cell=rnn", "--config-dir", "mine"]) == 0
    return tmp_path / "results"


def test_a_run_is_made_again(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["rerun", "mine/small", "rnn", "seed=2", "--config-dir", "mine"]) == 0
    shown = capsys.readouterr().out
    assert "mine/small rnn seed 2: bitwise the same" in shown
    lines = records.read(recorded, "mine/small")
    changed = [Line(line.values | {"best_val:test/loss": 7.0} if line.seed == 2 else line.values) for line in lines]
    records.write(recorded, "mine/small", changed)
    assert main(["rerun", "mine/small", "rnn", "seed=2", "--config-dir", "mine"]) == 0
    shown = capsys.readouterr().out
    assert "is a rerun made before" in shown
    assert "mine/small rnn seed 2: different" in shown
    assert "best_val:test/loss" in shown


def test_folders_are_what_they_are_elsewhere(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(recorded.parent))
    recorded.rename(recorded.parent / "res$1")
    words = ["results_root=~/res$$1", "runs_root=$HOME/a=b$$c", "--config-dir", "~/mine"]
    assert main(["rerun", "mine/small", "rnn", *words]) == 0
    assert len(list((recorded.parent / "a=b$c" / "rerun").glob("adding-rnn-*/record.json"))) == 1


def test_what_cannot_be_made_again_is_refused(recorded: Path, refused: Refused) -> None:
    for words, message in (
        (["mine/small"], "rerun needs a table and a row"),
        (["mine/small", "rn"], "nothing is recorded of mine/small rn: did you mean 'rnn'"),
        (["mine/small", "gru"], "nothing is recorded of mine/small gru"),
        (["mine/small", "rnn", "seed=3"], "seed=3 of mine/small rnn is not recorded; choose among 1, 2"),
        (["mine/small", "rnn", "trainer.max_steps=4"], "made with other settings"),
    ):
        refused(["rerun", *words, "--config-dir", "mine"], message)


@pytest.mark.parametrize(
    ("after", "word"),
    [(0.5, BITWISE), (0.5 + 1e-7, ROUNDED), (0.51, DIFFERENT), (None, DIFFERENT)],
)
def test_numbers_differ_bitwise_to_rounding_or_more(after: float | None, word: str) -> None:
    same = {"run_id": "a", "seed": 1, "last:test/loss": 0.25, "time/wall_s": 3.0}
    before = Line(same | {"best_val:test/loss": 0.5})
    other = Line({"seed": 2, "best_val:test/loss": 0.9})
    again = Line(same | {"time/wall_s": 9.0} | ({} if after is None else {"best_val:test/loss": after}))
    found = drifts(before, again, [before, other])
    assert [one.name for one in found] == ["best_val:test/loss", "last:test/loss"], "what a run costs is no result"
    assert (found[0].word, verdict(found)) == (word, word)
    assert found[0].seeds == (0.5, 0.9)
