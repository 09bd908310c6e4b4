"""Which runs of a sweep are computed together."""

from pathlib import Path

import pytest

from orthobench.run import grouping
from orthobench.study.catalogue import SHIPPED
from orthobench.study.sweep import sweep
from tests.ensemble.helpers import TINY


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["model=lstm", "task=ptb_char", "recipe=none"], "carries its state"),
        (["model=scornn", "task=adding", "model.dropout=0.1"], "dropout"),
        (["model=scornn", "task=adding", "model.recurrent_gradient_clip=1.0"], "recurrent_gradient_clip"),
        (["model=scornn", "task=adding", "trainer.precision=16-mixed"], "precision=16"),
    ],
)
def test_what_cannot_be_a_member(words: list[str], reason: str) -> None:
    assert grouping.why_not(SHIPPED.settings(["model=scornn", "task=adding"])) is None
    assert reason in str(grouping.why_not(SHIPPED.settings(words)))


def test_groups(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    words = [["seed=1"], ["seed=2", "T=9"], ["seed=2"], ["model.dropout=0.1"], ["seed=3", "optimizer.lr=0.1"],
             ["seed=4", "optimizer=sgd"]]  # fmt: skip
    runs = [SHIPPED.settings(["model=rnn", "task=adding", "recipe=none", *some]) for some in words]
    monkeypatch.setattr(grouping, "has_gpu", lambda run: True)
    assert grouping.groups(runs, asked=True) == [[0, 2, 4], [1], [3], [5]]
    assert "ensemble=true: a process for each run, because dropout" in capsys.readouterr().out
    monkeypatch.setattr(grouping, "has_gpu", lambda run: False)
    assert grouping.groups(runs) == [[0], [1], [2], [3], [4], [5]]


def test_ensemble_is_no_part_of_a_runs_identity() -> None:
    assert SHIPPED.settings(["ensemble=true"]).digest == SHIPPED.settings([]).digest


@pytest.mark.slow
def test_a_sweep_trains_an_ensemble_in_one_process(
    here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(grouping, "has_gpu", lambda run: True)
    words = ["model=irnn", "task=adding", "optimizer=sgd", *TINY[:-4], "task.batch_size=4", "ensemble=true"]
    assert sweep([*words, "optimizer.lr=1e-3,1e30", "seed=1,2"], SHIPPED) == 4
    out, err = capfd.readouterr()
    logs = "".join(path.read_text() for path in (here / "runs" / ".launched").glob("*.log"))
    assert "4 members as one program" in logs
    assert "2 of 4 runs done, 2 diverged" in out
    assert err.count("exit code 4") == 4  # at once and at the end
    assert sweep([*words, "optimizer.lr=1e-3", "seed=1,2,3"], SHIPPED) == 0
    assert "3 runs, 2 done already" in capfd.readouterr().out
