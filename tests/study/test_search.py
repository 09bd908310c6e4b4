"""Tunings of runs that are finished already, so that nothing is trained: the study, its trials, what they give."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from orthobench.__main__ import main
from orthobench.common.packages import install
from orthobench.config import ranges
from orthobench.errors import StorageError
from orthobench.recording.claim import Claim
from orthobench.study.catalogue import SHIPPED, Catalogue
from orthobench.study.tune.journal import storage
from orthobench.study.tune.search import Search, open_study
from orthobench.study.tune.tuned import ranking
from tests.conftest import Refused, write
from tests.own_runs import run

optuna = pytest.importorskip("optuna", reason="optuna is not installed: see the extra `tune`")
ADDING = ("model=gru", "task=adding", "T=20")
RATES = {"0.1": 0.3, "0.01": 0.1, "0.001": 0.2, "0.0001": 0.4}
RANGE = "optimizer.lr={0.1,0.01,0.001,0.0001}"


@pytest.fixture(autouse=True)
def _finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for lr, val in RATES.items():
        run(Path("runs"), *ADDING, f"optimizer.lr={lr}", val=val, test=1 - val)


def search() -> Search:
    return Search(ADDING, (ranges.parse(RANGE),), SHIPPED)


def study() -> Any:
    return open_study(search())


def test_a_tuning_chooses_by_validation_and_writes_a_recipe(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", *ADDING, RANGE, "--trials", "10"]) == 0
    out = capsys.readouterr().out
    values = [trial.value for trial in study().get_trials()]
    assert len(values) == 10
    assert 0.1 in values
    assert set(values) <= set(RATES.values()), "the validation score of every rate, never that of the test"
    assert "10 done; the best: val/loss 0.1, optimizer.lr=0.01, run adding-gru-" in out
    made = yaml.safe_load((search().folder / "conf" / "recipe" / "tuned.yaml").read_text())
    assert (made["optimizer"]["lr"], made["T"]) == (0.01, 20)
    command = out.splitlines()[-1].split()
    again = Catalogue((Path(command[command.index("--config-dir") + 1]),)).settings(
        [word for word in command[1:] if "=" in word]
    )
    assert again.run_id == SHIPPED.settings([*ADDING, "optimizer.lr=0.01"]).run_id
    assert (search().folder / "importance.svg").read_text().startswith("<svg")


def test_the_same_command_adds_what_is_missing_and_does_nothing_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", *ADDING, RANGE, "--trials", "2"]) == 0
    first = [(t.number, t.params, t.value) for t in study().get_trials()]
    assert main(["tune", *ADDING, RANGE, "--trials", "2"]) == 0
    assert main(["tune", RANGE.replace(",", ", "), *ADDING, "--trials", "3"]) == 0
    found = [(t.number, t.params, t.value) for t in study().get_trials()]
    assert (found[:2], len(found)) == (first, 3)
    assert "2 of 3 trials begun" in capsys.readouterr().out


def test_trials_with_other_data_are_not_mixed_with_new_ones(refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORTHOBENCH_DATA", "data")
    assert main(["tune", *ADDING, RANGE, "--trials", "2"]) == 0
    write(Path(), {"data/mine.npz": b"other"})
    for lr, val in RATES.items():
        changed = {"plugins": {}, "yaml": {}, "data": {"mine.npz": "0" * 64}}
        run(Path("runs"), *ADDING, f"optimizer.lr={lr}", val=val, sources=changed)
    refused(["tune", *ADDING, RANGE, "--trials", "3"], "trials were made before a change of the data in mine.npz")
    assert len(study().get_trials()) == 2


@pytest.mark.slow
def test_the_draws_follow_from_the_study() -> None:
    drawn = []
    for _ in range(2):
        assert main(["tune", *ADDING, "optimizer.lr={0.1,0.01,0.001,0.0001}", "--trials", "3"]) == 0
        drawn.append([trial.params for trial in study().get_trials()])
        (search().folder / "journal.log").unlink()
    assert drawn[0] == drawn[1]


def test_a_trial_that_a_killed_process_left_is_gone_on_with() -> None:
    left = study().ask()
    search().run(left)
    assert main(["tune", *ADDING, RANGE, "--trials", "1"]) == 0
    (trial,) = study().get_trials()
    assert (trial.state.name, trial.params) == ("COMPLETE", left.params)


def test_a_trial_of_another_process_is_left_to_it() -> None:
    study().ask()
    with Claim(search().folder / "claims" / "0"):
        assert main(["tune", *ADDING, RANGE, "--trials", "3"]) == 75, "it is not done yet"
    assert [trial.state.name for trial in study().get_trials()] == ["RUNNING", "COMPLETE", "COMPLETE"]


def test_diverged_and_refused_trials_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    run(Path("runs"), *ADDING, "optimizer.lr=9", val=None, status="diverged", reason="the training loss is nan")
    assert main(["tune", *ADDING, "optimizer.lr={9,0.1}", "--trials", "6"]) == 0
    assert "diverged, the training loss is nan" in capsys.readouterr().out


@pytest.mark.slow
def test_a_trial_that_is_killed_again_and_again_is_told_and_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As the kernel does for want of memory: the others are tried, and the same command does not try it again."""
    begun = []

    class Killed:
        code = -9

        def __init__(self, command: Any, place: Any) -> None:
            begun.append(command.name)

        def poll(self, stopping: bool) -> int:
            return self.code

    monkeypatch.setattr("orthobench.study.tune.trial.Process", Killed)
    tuning = ["tune", *ADDING, "optimizer.lr={0.1,0.5}", "--trials", "8"]
    assert main(tuning) == 0
    told = capsys.readouterr().out
    assert "failed, killed by SIGKILL, perhaps for want of memory, 3 times after step 0; see " in told
    lost = told.count(": failed, killed by SIGKILL")  # in the lines of the runs; the table at the end says it again
    assert f"{8 - lost} done, {lost} failed" in told
    assert (len(begun), len(set(begun))) == (3 * lost, 1)
    assert main(tuning) == 0
    assert len(begun) == 3 * lost


@pytest.mark.slow
def test_a_torn_line_is_cut_off_and_a_damaged_one_told() -> None:
    assert main(["tune", *ADDING, RANGE, "--trials", "2"]) == 0
    path = search().folder / "journal.log"
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"op_code":4,"work')
    assert len(study().get_trials()) == 2
    assert path.read_bytes().startswith(whole)
    lines = whole.splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], lines[2][: len(lines[2]) // 2] + b"\n", *lines[3:]]))
    with pytest.raises(StorageError, match="is damaged"):
        storage(path)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "nothing is to be tuned"),
        (["optimizer.lrr={1,2}"], "did you mean 'lr'"),
        (["model.hidden_size=int(0,8)"], "must be >= 1"),
        ([RANGE, "optimizer.lr=0.1"], "optimizer.lr= is given twice"),
        ([RANGE, "seed=1,2"], "write 'seed={1,2}'"),
        (["logger={csv,none}"], "give the same run"),
        ([RANGE, "gru"], "'gru' is not an argument here"),
        ([RANGE, "--trials", "0"], "--trials 0 is out of range"),
        ([RANGE, "--pruner", "medan"], "did you mean 'median'"),
    ],
)
def test_what_is_refused_before_any_work(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", *ADDING, *words]) == 2
    err = capsys.readouterr().err
    assert told in err
    assert len(err.splitlines()) == 1
    assert not list(Path("runs").glob("tune-*"))


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch, refused: Refused) -> None:
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    refused(["tune", *ADDING, RANGE], install("tune"))


def test_the_trials_are_ranked_by_their_score_and_say_why_they_have_none() -> None:
    optuna = pytest.importorskip("optuna", reason="optuna is not installed: see the extra `tune`")
    study, states = optuna.create_study(direction="maximize"), optuna.trial.TrialState
    for status, value, state in [("done", 0.5, "COMPLETE"), ("diverged", None, "PRUNED"), ("done", 0.75, "COMPLETE")]:
        trial = study.ask()
        trial.suggest_float("optimizer.lr", 0.0, 1.0)
        trial.set_user_attr("status", status)
        trial.set_user_attr("reason", "" if value else "the loss is nan")
        study.tell(trial, value, getattr(states, state))
    rows = ranking(study, ["optimizer.lr", "model.rho"])
    assert [(row[0], row[2], row[3]) for row in rows] == [
        ("3", "", "0.75"), ("1", "", "0.5"), ("2", "", "diverged: the loss is nan"),
    ]  # fmt: skip
    assert len(ranking(study, [], most=1)) == 1
