"""`reproduce` and `plan` of a searched table: all stages, one cell after the other, and a cell of the user's own."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from orthobench.__main__ import main
from orthobench.study.records import records
from orthobench.study.reproduce.plan import Plan
from tests.conftest import Refused, write

TABLE = """
track: searched
score: test/score
seeds: [1]
margin: {}
search:
  sobol: 1
  stages: [{trials: 2, seeds: [101]}, {trials: 1, seeds: [102]}]
  overrides: ["task.eval_lengths=[]"]
common: [task=cued_copying, recipe=none, task.digits=1, "task.delay=[1,2]", task.onset=0, "task.eval_lengths=[2,4]",
  task.val_size=64, task.test_size=20, task.batch_size=50, trainer.max_steps=200, trainer.val_check_interval=20,
  stopping.threshold=0.99, stopping.hold=2, stopping.extra_steps=20]
cells: {gru: [model=gru, model.hidden_size=24], rnn: [model=rnn, model.hidden_size=24]}
claims: [{claim: "It is solved.", test: {solves: [gru], seeds: 1}}]
presets: {}
"""
MINE = """
cell: elman
recurrent: free
hidden_size: 24
search:
  lr: log(5e-3,2e-2)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in (("experiment/mine/small", TABLE), ("model/own_cell", MINE)):
        write(tmp_path, {f"mine/{name}.yaml": text})
    return tmp_path


def recorded(folder: Path) -> set[tuple[str, int]]:
    return {(line.row, line.seed) for line in records.read(folder / "results", "mine/small")}


def test_a_cell_of_one_s_own_gets_the_same_search(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["mine/small", "--models", "own_cell", "--config-dir", "mine"]
    assert main(["reproduce", *words]) == 0
    found = recorded(folder)
    chosen = {row for row, seed in found if seed == 102}
    assert len(chosen) == 1, "the best of the first stage goes on"
    assert found == {("own_cell_trial0", 101), ("own_cell_trial1", 101)} | {(*chosen, seed) for seed in (1, 102)}
    table = (folder / "results" / "tables" / "fair2.md").read_text()
    assert "| own_cell |" in table
    assert "Not run yet: gru, rnn." in table
    capsys.readouterr()
    assert main(["reproduce", *words]) == 0
    assert "0 runs to do, 4 recorded already" in capsys.readouterr().out
    assert main(["plan", *words]) == 0
    assert "own_cell: complete, 4 runs" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["mine/small", "--models", "gur"], "gur is neither a row of mine/small nor a model: did you mean 'gru'"),
        (["mine/small", "--models", ""], "--models needs one or more names"),
        (["mine/small", "cell=gru", "--models", "gru"], "--models and cell= both say which cells"),
        (["mine/small", "seed=3"], "is a searched table: its seeds and those of its search are in its file"),
        (["mine/small", "cell=lstm"], "cell=lstm is no cell of mine/small"),
        (["fair/adding", "--models", "gru"], "--models is for searched tables"),
    ],
)
def test_wrong_words_are_refused(folder: Path, words: list[str], message: str, refused: Refused) -> None:
    refused(["reproduce", *words, "--config-dir", "mine"], message)


def run(place: int, search: bool = True) -> Any:
    return SimpleNamespace(place=place, table=SimpleNamespace(search=search or None))


def test_one_cell_is_complete_before_the_next_is_begun() -> None:
    found = Plan([run(0), run(0), run(1), run(1), run(2)], later=3)
    found.first_cells(1)
    assert [one.place for one in found.runs] == [0, 0]
    assert found.later == 6, "so that `reproduce` knows that there is more"
    found = Plan([run(0), run(0), run(1), run(1), run(2)])
    found.first_cells(3)
    assert [one.place for one in found.runs] == [0, 0, 1, 1], "as many cells as keep all processes at work"
    others = Plan([run(0, search=False) for _ in range(9)])
    others.first_cells(1)
    assert len(others.runs) == 9
