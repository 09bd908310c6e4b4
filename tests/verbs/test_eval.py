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


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["eval"], "eval needs a run"),
        (["eval", "a", "b"], "a is no run"),
        (["eval", "nowhere"], "nowhere is no run"),
        (["eval", "/nowhere"], "/nowhere is no run: there is no config.yaml in /nowhere; runs_root="),
        (
            ["eval", "nowhere", "--config-dir", "x"],
            "--config-dir is not needed, for the settings of a finished run hold all",
        ),
        (["eval", "nowhere", "optimizer.lr=1"], "optimizer.lr=1 does not apply to a run that is finished"),
        *(
            (
                ["eval", "nowhere", f"task.{name}=9", "T=5"],
                f"task.{name}=9 is no setting of a task: T=400,800 sets the lengths",
            )
            for name in ("data_root", "run", "lengths", "content", "T")
        ),
        (["inspect"], "inspect needs one run"),
        (["inspect", "nowhere"], "nowhere is no run"),
        (["inspect", "nowhere", "T=5"], "T=5 does not apply to inspect"),
        (["inspect", "nowhere", "--sequences", "0"], "--sequences 0 is out of range"),
        (["generate"], "generate needs one run"),
        (["generate", "a", "--tokens", "0"], "--tokens 0 is out of range"),
        (["generate", "a", "--temperature", "-1"], "--temperature -1.0 is out of range"),
        (["generate", "a", "--temperature", "nan"], "--temperature nan is out of range"),
        (["generate", "a", "--seed", "-1"], "--seed -1 is out of range"),
        (["generate", "nowhere"], "nowhere is no run"),
        *(
            (["export", *words], "export")
            for words in ([], ["a", "b"], ["a", "optimizer.lr=1"], ["a", "--format", "tflite"])
        ),
    ],
)
def test_wrong_words(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert message in capsys.readouterr().err
