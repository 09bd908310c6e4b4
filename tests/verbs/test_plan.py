"""`orthobench plan` of tables: what is to do now and at the most, and what another table has, as `compare` says too."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orthobench.__main__ import main
from orthobench.study.costs import measuring
from orthobench.study.costs.run_costs import START
from orthobench.study.records import records
from tests.conftest import write
from tests.report.made_up import made_up, record
from tests.study.test_fair import CUED, RATES, SEEDS, TUNING, tuned
from tests.verbs.test_table_verbs import cost_of

pytestmark = pytest.mark.usefixtures("here", "measured")
MINE = ["mine/cued", "cell=gru_digits3", "--config-dir", "mine"]


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step takes a second, so that runs of equal length take equally long."""
    monkeypatch.setattr(measuring, "measure", cost_of)
    monkeypatch.setattr(measuring, "start_up", lambda settings: replace(cost_of(settings), digest=START, step_s=1e-9))


@pytest.fixture
def like(tmp_path: Path) -> None:
    """A table like one that has the tuning of a model in one case, and three of its five reported seeds."""
    lines = tuned("gru", "_digits3", "1e-2", metric="score", ends=(1.0, 0.5))
    scores: dict[str, Any] = {"best_val___test__score": 0.9, "baseline__score": 0.0}
    for length in (10, 20, 40, 80, 160):
        scores |= {f"length__{length}___test__score": 0.9, f"length__{length}___baseline__score": 0.0}
    lines += [made_up("gru_digits3_lr1e-2", seed, **scores) for seed in SEEDS[:3]]
    record(tmp_path / "results", CUED, lines)
    write(tmp_path, {"mine/experiment/mine/cued.yaml": f"like: {CUED}\ntitle: mine\n"})


def test_a_plan_tells_what_is_to_do_now_from_what_may_follow(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "fair2/cued_copying", "--models", "gru"]) == 0
    out = capsys.readouterr().out
    told = re.search(r"0 runs recorded, (\d+) to do now \((.+?)\), at most (\d+) \((.+?)\) on this machine", out)
    assert told is not None
    now, now_s, most, most_s = told.groups()
    assert f"0 of at most {most} runs recorded, {now} to do next, {int(most) - int(now)} later at the most" in out
    assert now_s != most_s


@pytest.mark.usefixtures("like")
def test_what_another_table_has_is_counted_once_and_is_not_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", *MINE]) == 0
    known = len(RATES) * len(TUNING) + 3
    out = capsys.readouterr().out
    assert f"{known} runs recorded, 2 to do; " in out
    assert f"{known} of its runs are recorded for {CUED}: `reproduce` takes them over" in out
    assert f"mine/cued: {known} of {known + 2} runs recorded, 2 to do\n" in out
    assert not records.path_of(Path("results"), "mine/cued").exists(), "a plan writes nothing"


@pytest.mark.usefixtures("like")
def test_a_table_without_records_is_told_of_those_that_fit_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "mine/cued", "--config-dir", "mine"]) == 0
    told = f"13 runs of {CUED} fit this table: `orthobench reproduce mine/cued --config-dir mine` takes them over."
    assert told in capsys.readouterr().out
    assert main(["compare", "fair/parity"]) == 0
    assert "nothing is recorded in results/records; results_root= names another folder" in capsys.readouterr().out
