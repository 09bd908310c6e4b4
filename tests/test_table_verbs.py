"""The verbs that show published tables: list, plan, compare, plot, report, tables, cite, and -m experiment=."""

from pathlib import Path
from typing import Any

import pytest

from orthobench.__main__ import main
from orthobench.report import records
from orthobench.settings import settings
from orthobench.verbs import plan_cost, reproduce
from tests.report.made_up import made_up


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def recorded(results: Path) -> None:
    lines = [made_up("sgornn", seed, last___test__accuracy=0.94 + seed / 5000) for seed in range(1, 11)]
    lines += [made_up("lstm", seed, "smoke", last___test__accuracy=0.5) for seed in (1, 2)]
    records.write(results, "sgornn/table2", [*lines, made_up("lstm", 1, last___test__accuracy=0.9)])


def test_list_tables(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "tables"]) == 0
    out = capsys.readouterr().out
    assert "sgornn/table2" in out
    assert "SGORNN, Table 2: HAR-2" in out
    assert len(out.splitlines()) == 40


def test_compare(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    recorded(tmp_path / "results")
    assert main(["compare", "sgornn/table2"]) == 0
    out = capsys.readouterr().out
    assert "94.07 ± 0.20" in out
    assert "reproduced" in out
    assert "partial (1 of 10)" in out
    assert "shortened to smoke" in out
    assert main(["compare"]) == 2


def test_plot(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    recorded(tmp_path / "results")
    assert main(["plot", "sgornn/table2", "scornn/table1"]) == 0
    path = Path("results/figures/sgornn-table2-test-accuracy-published-and-ours.svg")
    assert f"wrote {path}" in capsys.readouterr().out
    assert path.read_text().startswith("<svg")
    assert main(["plot", "scornn/table1"]) == 0
    assert "nothing is recorded" in capsys.readouterr().out


def test_report_and_tables(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    recorded(tmp_path / "elsewhere")
    assert main(["report", "results_root=elsewhere"]) == 0
    assert "<!doctype html>" in (tmp_path / "elsewhere" / "report.html").read_text()
    assert main(["tables", "--check", "results_root=elsewhere"]) == 1
    assert main(["tables", "sgornn", "results_root=elsewhere"]) == 0
    assert "wrote elsewhere/tables/sgornn.md" in capsys.readouterr().out
    assert main(["tables", "results_root=elsewhere"]) == 0
    assert main(["tables", "--check", "results_root=elsewhere"]) == 0
    assert main(["tables", "sgorn"]) == 2
    assert "did you mean 'sgornn'" in capsys.readouterr().err
    assert main(["report", "now"]) == 2


def test_plan_of_a_table(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orthobench.verbs.plan_cost.start_up", lambda: 5.0)
    assert main(["plan", "ncgru/figure8", "--preset", "smoke"]) == 0
    out = capsys.readouterr().out
    assert "ncgru/figure8: 0 of 1 runs recorded, 1 to do" in out
    assert "ncgru_c: 1 seed, 10,182 parameters, 2 steps x" in out


def test_a_plan_counts_steps_validations_tests_and_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"step_s": 1.0, "validation_s": 0.5, "batch_s": 0.25, "setup_s": 2.0, "peak_bytes": 1 << 30}
    monkeypatch.setattr(plan_cost, "_short_run", lambda *_: found)
    monkeypatch.setattr(plan_cost, "start_up", lambda: 4.0)
    words = ["model=rnn", "task=recall", "recipe=none", "task.val_size=1000", "task.test_size=600"]
    words += ["task.train_size=null", "task.eval_batch_size=100", "trainer.max_steps=105", "trainer.max_epochs=null"]
    cost = plan_cost.measure([*words, "trainer.val_check_interval=10"])
    assert cost.evaluation_s == 11 * (0.5 + 10 * 0.25) + 2 * 6 * 0.25, "ten validations and one at the end"
    assert (cost.steps, cost.start_s, cost.total_s) == (105, 6.0, 105 + cost.evaluation_s + 6.0)
    assert "105 steps x 1000.0 ms, evaluation 36.0s, start 6.0s = 2m 27s, 1,024 MiB" in str(cost)
    alike = plan_cost.measure([*words, "trainer.val_check_interval=10", "trainer.limit_val_batches=2"])
    assert alike.evaluation_s == 11 * (0.5 + 2 * 0.25) + 2 * 6 * 0.25


def test_runs_that_differ_in_seed_and_rate_cost_the_same() -> None:
    words = ["model=rnn", "task=recall"]
    keys = {
        plan_cost.same_cost(settings([*words, *more]).identity)
        for more in (["seed=1"], ["seed=2", "optimizer.lr=0.1"], ["T=7"])
    }
    assert len(keys) == 2


def test_cite_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cite", "ncgru/table1"]) == 0
    assert "Mucllari" in capsys.readouterr().out


def test_m_with_an_experiment_is_reproduce(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}
    names = ("names", "preset", "seeds", "cells", "budget", "jobs", "extra", "folders")
    monkeypatch.setattr(reproduce, "run", lambda *given: seen.update(zip(names, given, strict=True)) or 0)
    assert main(["-m", "experiment=sgornn/table2", "cell=lstm,sgornn", "seed=1,2", "runs_root=there"]) == 0
    assert (seen["names"], seen["cells"], seen["seeds"]) == (["sgornn/table2"], ["lstm", "sgornn"], [1, 2])
    assert seen["extra"] == ["runs_root=there"]
    assert seen["preset"] == "full"
