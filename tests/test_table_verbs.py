"""The verbs that show published tables: list, plan, compare, plot, report, tables, cite, and -m experiment=."""

from pathlib import Path
from typing import Any

import pytest

from orthobench.__main__ import main
from orthobench.report import records
from orthobench.verbs import reproduce
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


def test_plan_of_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "ncgru/figure8", "--preset", "smoke"]) == 0
    out = capsys.readouterr().out
    assert "ncgru/figure8: 0 of 1 runs recorded, 1 to do" in out
    assert "ncgru_c: 1 seed, 10,182 parameters, 2 steps x" in out


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
