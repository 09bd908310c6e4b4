"""results.json: every number with its table, row, seed and run, and where that is recorded."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import orthobench
from orthobench.recording.digest import write_sealed
from orthobench.report.site import front
from orthobench.report.site.collected import collected
from orthobench.report.site.run_lines import run_lines
from orthobench.report.site.write import rendered
from orthobench.study.catalogue import SHIPPED
from orthobench.study.outside.packed import pack
from orthobench.study.records import records
from tests.report.site.conftest import few, undrawn


def test_every_recorded_number_is_there_with_its_place(data: dict[str, Any], results: Path) -> None:
    lines = records.read(results, "fair/cued_copying")
    assert lines
    for line in lines:
        run = data["runs"][line.run_id]
        (place,) = run["places"]
        assert (place["table"], place["row"], place["seed"]) == ("fair/cued_copying", line.row, line.seed)
        assert (results / place["record"]).is_file()
        assert run["numbers"]["best_val:test/score"] == line.values["best_val:test/score"]
        assert run["settings"]["seed"] == line.seed
        assert f"seed={line.seed}" in run["command"].split()


def test_a_cell_of_the_fair_track_names_the_run_of_every_seed(data: dict[str, Any]) -> None:
    (gru,) = (line for line in data["fair"] if line["model"] == "gru" and line["table"] == "fair/cued_copying")
    assert (gru["rate"], gru["horizon"], gru["trivial"]) == ("3e-3", 40, 0.0)
    assert [one["seed"] for one in gru["seeds"]] == [1, 2, 3, 4, 5]
    for one in gru["seeds"]:
        assert data["runs"][one["run"]]["numbers"]["best_val:test/score"] == one["value"]
    assert [one["length"] for one in gru["lengths"]] == [10, 20, 40, 80, 160]
    assert gru["lengths"][-1]["mean"] < gru["low"] <= gru["mean"] <= gru["high"]


def test_a_published_number_stands_beside_ours(data: dict[str, Any]) -> None:
    lines = [line for line in data["published"] if line["table"] == "sgornn/table2" and line["runs"]]
    assert lines
    assert all(set(line["runs"]) <= set(data["runs"]) for line in lines)
    assert {"sgornn/table2", "sgornn/figure1"} <= {line["table"] for line in data["published"]}


def test_it_is_json_without_nan(data: dict[str, Any]) -> None:
    assert json.loads(json.dumps(data, allow_nan=False))["schema"] == data["schema"]


def test_a_run_of_other_settings_says_so(results: Path) -> None:
    found = run_lines([SHIPPED.table("sgornn/figure1")], results, {("sgornn/figure1", "full"): set()}, None)
    assert found
    assert not any(run["places"][0]["fits"] or run["command"] or run["settings"] for run in found.values())


def test_what_inspect_found_is_taken_in(results: Path, tmp_path: Path) -> None:
    run_id = records.read(results, "fair/cued_copying")[0].run_id
    matrix = {"modulus": [1.0, 0.5], "phase": [0.0, 3.0]}
    folder = tmp_path / run_id / "evaluations"
    folder.mkdir(parents=True)
    write_sealed(folder / "inspect.json", {"layers": [{"matrices": {"h": matrix}}]})
    needed = {"run_id": run_id, "status": "done", "model": "gru", "task": "cued_copying", "seed": 1, "steps": 5}
    write_sealed(tmp_path / run_id / "record.json", {**needed, "curve": {"val/loss": [[0, 1.0], [5, 0.5]]}})
    filled = {("fair/cued_copying", "full"): set[str]()}
    run = run_lines([SHIPPED.table("fair/cued_copying")], results, filled, tmp_path)[run_id]
    assert run["phases"] == [{"layer": 1, "matrix": "h", **matrix}]
    assert run["curves"] == {"val/loss": [[0, 1.0], [5, 0.5]]}


def test_nothing_recorded_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few(monkeypatch)
    found = collected(tmp_path)
    assert (found["runs"], found["fair"]) == ({}, [])
    assert {line["status"] for line in found["published"]} >= {"not run", "count equal"}
    undrawn(monkeypatch)
    assert "No fair table has a finished model yet" in rendered(found)["index.html"]


WORDS = ("better", "differs", "not run", "undecided", "underspecified")


def test_the_first_paragraphs_say_what_for_whom_and_what_came_out(data: dict[str, Any]) -> None:
    need = {"need": "x", "table": "t", "case": "", "length": 1}
    lines = [{"preset": "full", "lost": False, "status": one} for one in WORDS]
    told = front.told(
        data | {"answer": [need | {"models": ["gru", "lem"]}, need | {"models": ["gru"]}], "published": lines}
    )
    assert "for people who choose a cell" in told[0]
    assert f"{len(data['runs'])} recorded runs" in told[0]
    assert told[1].endswith("gru does 2 of the 2 things below.")
    assert "Of 5 published numbers" in told[2]
    assert "4 are tested: 1 agree with ours, 1 do not, 1 differ where the paper leaves out a setting, 1 are" in told[2]
    assert len(front.told(data | {"answer": [], "published": []})) == 1


def test_a_pack_of_others_changes_nothing_but_its_own_rows(
    data: dict[str, Any], site: dict[str, str], results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("model=gru", "task=cued_copying", "model.hidden_size=4", "recipe=none", "trainer.max_steps=2")
    made = orthobench.build(*words, "task.val_size=4", "task.test_size=4", f"runs_root={tmp_path / 'runs'}")
    made.run()
    shutil.copytree(results, tmp_path / "results")
    pack([made.settings.folder], tmp_path / "results" / "outside" / "theirs")
    (tmp_path / "results" / "outside" / "broken").mkdir()
    few(monkeypatch)
    undrawn(monkeypatch)
    found = collected(tmp_path / "results")
    (run,) = found.pop("outside")
    assert (run["pack"], run["run_id"], run["settings"]["seed"]) == ("theirs", made.run_id, 1)
    assert run["curves"]
    assert not run["command"]  # its settings are on its page; a command of some of them would be another run
    assert {name: value for name, value in data.items() if name != "outside"} == found
    pages = rendered(found | {"outside": [run]}, "Written by a test.")
    own = {"outside.html", f"outside/theirs/{made.run_id}.html", f"data/curve-theirs-{made.run_id}.csv"}
    assert set(pages) - set(site) == own
    assert "nobody here has made it again" in pages[f"outside/theirs/{made.run_id}.html"]
    link = f'<a href="../outside/theirs/{made.run_id}.html">'
    assert [path for path, text in pages.items() if link in text] == ["tasks/cued_copying.html"]
    assert 'class="short outside">outside: theirs' in pages["outside.html"]
