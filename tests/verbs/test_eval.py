"""The verbs of a finished run, eval and inspect: what they print, and what they say of words that are wrong."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from orthobench.__main__ import main
from tests.run.finished import finished

COPYING = ("model=scornn", "task=copying", "T=5")


def test_a_table_with_the_baseline_beside_each_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, _ = finished(tmp_path, *COPYING)
    capsys.readouterr()
    assert main(["eval", str(folder), "T=5,1200"]) == 0
    head, names, first, second, where = capsys.readouterr().out.splitlines()
    assert head == f"{folder.name}: the best weights, of step 2"
    assert names.split("  ") == ["", "length", "test/accuracy (baseline)", "test/loss (baseline)", "sequences"]
    assert (first.split()[0], first.split()[-1], second.split()[0]) == ("5", "30", "1,200")
    assert "(0.65)" in first
    assert "(0.9928)" in second  # (1200 + 10 + 10 / 8) / 1220
    assert where == str(folder / "evaluations")


def test_the_second_time_it_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, _ = finished(tmp_path, *COPYING)
    capsys.readouterr()
    printed = []
    for _ in range(2):
        assert main(["eval", folder.name, f"runs_root={tmp_path}", "task.marker=false"]) == 0
        printed.append(capsys.readouterr().out.splitlines())
    assert printed[0][:-1] == printed[1][:-1]
    assert "test/emitted" in printed[0][1]
    assert printed[1][-1].endswith("1 of 1 evaluated before")


def test_each_of_several_runs_has_its_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = [finished(tmp_path, *COPYING, f"seed={seed}")[0] for seed in (1, 2)]
    capsys.readouterr()
    assert main(["eval", *map(str, folders)]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[::4] == [f"{folder.name}: the best weights, of step 2" for folder in folders]
    assert printed[3::4] == [str(folder / "evaluations") for folder in folders]


def test_a_range_is_shown_as_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, _ = finished(tmp_path, "model=gru", "task=cued_copying", "task.delay=[2,4]")
    capsys.readouterr()
    assert main(["eval", str(folder), "--last"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert "the last weights" in printed[0]
    assert printed[2].split()[0] == "2..4"


def test_a_table_a_file_and_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, record = finished(tmp_path, "model=scornn", "task=copying", "T=5", "model.layers=2")
    capsys.readouterr()
    assert main(["inspect", folder.name, f"runs_root={tmp_path}", "--sequences=3"]) == 0
    printed = capsys.readouterr().out
    assert "3 sequences of 25 steps" in printed
    for word in ("eigenvalue modulus", "singular values", "Lyapunov", "norm of dL/dh_t"):
        assert word in printed
    found = json.loads((folder / "evaluations" / "inspect.json").read_text())
    assert (found["run_id"], found["sequences"], len(found["layers"])) == (folder.name, 3, 2)
    distances = [line.split()[0] for line in printed.splitlines() if line.startswith("  ")][-7:]
    assert distances == ["0", "1", "2", "5", "10", "20", "24"]
    ElementTree.fromstring((folder / "evaluations" / "inspect.svg").read_text())
    assert json.loads((folder / "record.json").read_text()) == record
