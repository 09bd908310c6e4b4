"""Packs of others: made without places and names, and read as files of nobody known, one sentence for each rule."""

import json
import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import orthobench
from orthobench.__main__ import main
from orthobench.errors import ConfigError, DataError, OrthobenchError
from orthobench.recording.digest import seal
from orthobench.study.catalogue import SHIPPED
from orthobench.study.outside.checked import LARGEST, Submission, read_pack, refuse_drift
from orthobench.study.outside.packed import PACK, pack
from orthobench.study.outside.texts import telling

WORDS = (
    "model=gru", "task=adding", "T=4", "model.hidden_size=4", "recipe=none", "trainer.max_steps=4",
    "trainer.val_check_interval=2", "task.val_size=4", "task.test_size=4", "task.batch_size=4",
)  # fmt: skip
Change = Callable[[dict[str, Any]], Any]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = orthobench.build(*WORDS, f"runs_root={tmp_path_factory.mktemp('home')}")
    made.run()
    return made.settings.folder


@pytest.fixture
def packed(run: Path, tmp_path: Path) -> Path:
    return pack([run], tmp_path / "pack")


def forged(folder: Path, change: Change) -> None:
    """Change the record of a pack, and seal everything anew, as somebody who means it would."""
    (path,) = (one for one in folder.iterdir() if one.name != PACK)
    record = json.loads(path.read_text())
    change(record)
    sealed = seal(record)
    path.write_text(json.dumps(sealed))
    listed = json.loads((folder / PACK).read_text())
    (folder / PACK).write_text(json.dumps(seal(listed | {"files": {path.name: sealed["sha256"]}})))


def test_a_pack_passes_and_tells_no_place(run: Path, packed: Path) -> None:
    found = read_pack(packed)
    assert set(found.records) == {run.name}
    told = "".join(path.read_text() for path in packed.iterdir())
    assert not [word for word in (str(run.parent), str(Path.home()), platform.node(), str(Path.cwd())) if word in told]
    record = json.loads((run / "record.json").read_text())
    assert found.records[run.name]["metrics"] == record["metrics"]
    assert found.records[run.name]["curve"] == record["curve"]


def set_in(*keys: str, to: Any) -> Change:
    def change(record: dict[str, Any]) -> None:
        for key in keys[:-1]:
            record = record[key]
        record[keys[-1]] = to

    return change


FORGED = {
    "a path": (set_in("reason", to="it is in /home/me/runs"), "tells 'it is in /home/me/runs'"),
    "a windows path": (set_in("hardware", "cpu", to="C:\\Users\\me"), "tells"),
    "an address": (set_in("hardware", "gpu", to="at 10.0.0.7"), "tells"),
    "a key that is a path": (set_in("env", "/srv/x/y", to="1"), "tells"),
    "a key of its own": (set_in("host", to="node7"), "has no 'host'"),
    "a place": (set_in("config", "data_root", to="elsewhere"), "name places"),
    "own data": (set_in("config", "task", "path", to="mine.npz"), "name places"),
    "another run": (set_in("config", "optimizer", "lr", to=0.5), "settings are those of"),
    "another seed": (set_in("seed", to=2), "its seed is 2, and 1 by its settings"),
    "more steps": (set_in("steps", to=5), "its settings allow 4"),
    "a loss below zero": (set_in("metrics", "best_val", "test/loss", to=-1.0), "lies between"),
    "no score": (set_in("metrics", "best_val", to={}), "no score"),
    "not finished": (set_in("status", to="stopped"), "only runs that are done or diverged"),
    "a curve too long": (set_in("curve", "train/loss", to=[[99, 0.1]]), "goes beyond"),
    "no numbers": (set_in("metrics", to=[]), "not the record of a run"),
    "text for a number": (set_in("parameters", "total", to="many"), "not the record of a run"),
    "no settings": (set_in("config", to={}), "name places"),
    "settings of nothing": (set_in("config", "model", to={}), "do not suit this version"),
    "no count": (set_in("parameters", to={}), "no count of parameters"),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_record_is_refused_with_its_rule(name: str, packed: Path) -> None:
    change, sentence = FORGED[name]
    forged(packed, change)
    with pytest.raises(DataError, match=sentence) as caught:
        read_pack(packed)
    assert "\n" not in str(caught.value)


def test_a_budget_of_parameters_is_kept(packed: Path) -> None:
    forged(packed, set_in("config", "params", to=10))
    with pytest.raises(DataError, match="off its budget of 10"):
        read_pack(packed)


def _linked(folder: Path) -> None:
    (path,) = (one for one in folder.iterdir() if one.name != PACK)
    path.rename(folder.parent / "other.json")
    path.symlink_to(folder.parent / "other.json")


def _huge(folder: Path) -> None:
    with (folder / "bomb-gru-0123456789.json").open("wb") as file:
        file.truncate(LARGEST + 1)


def _changed(folder: Path) -> None:
    (path,) = (one for one in folder.iterdir() if one.name != PACK)
    path.write_text(path.read_text().replace('"seed": 1', '"seed": 2'))


FOLDERS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "a link": (_linked, "is a link"),
    "a folder": (lambda folder: (folder / "more").mkdir(), "no plain file"),
    "a pipe": (lambda folder: os.mkfifo(folder / "x-gru-0123456789.json"), "no plain file"),
    "a bomb": (_huge, "has more than"),
    "a program": (lambda folder: (folder / "setup.py").write_text("x"), "does not belong"),
    "a name that leads on": (lambda folder: (folder / "..json").write_text("x"), "does not belong"),
    "another record": (lambda folder: (folder / "adding-gru-0123456789.json").write_text("{}"), "differ in"),
    "a changed record": (_changed, "has been changed"),
    "no list": (lambda folder: (folder / PACK).unlink(), "has no pack.json"),
    "a deep list": (lambda folder: (folder / PACK).write_text("[" * 100_000), "is damaged"),
    "a list of nothing": (lambda folder: (folder / PACK).write_text(json.dumps(seal({"schema": 1}))), "is damaged"),
}


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_that_is_no_pack_is_refused(name: str, packed: Path) -> None:
    spoil, sentence = FOLDERS[name]
    spoil(packed)
    with pytest.raises(DataError, match=sentence):
        read_pack(packed)


def test_a_rerun_may_differ_by_rounding_and_by_no_more(run: Path, packed: Path, tmp_path: Path) -> None:
    own, other = read_pack(packed), read_pack(packed)
    assert refuse_drift(own, [other], [], tmp_path) == 1
    scores = other.records[run.name]["metrics"]["best_val"]
    scores["test/loss"] *= 1 + 1e-7
    assert refuse_drift(own, [other], [], tmp_path) == 1
    scores["test/loss"] *= 1.5
    with pytest.raises(DataError, match="for the same run; reruns of one seed differ by rounding"):
        refuse_drift(own, [Submission("theirs", other.records)], [], tmp_path)
    assert refuse_drift(own, [], [SHIPPED.table("fair/parity")], tmp_path) == 0


@pytest.mark.parametrize("spoilt", ["metrics.csv", "record.json"])
def test_a_run_that_was_changed_is_not_packed(spoilt: str, tmp_path: Path) -> None:
    made = orthobench.build(*WORDS, "trainer.max_steps=2", f"runs_root={tmp_path}")
    made.run()
    path = made.settings.folder / spoilt
    path.write_text(path.read_text().replace("2", "3"))
    with pytest.raises(OrthobenchError):
        pack([made.settings.folder], tmp_path / "pack")
    assert not (tmp_path / "pack").exists()


def test_a_run_that_no_check_would_pass_is_not_packed(tmp_path: Path) -> None:
    words = [word for word in WORDS if not word.startswith("model.hidden_size")]
    made = orthobench.build(*words, "params=100", f"runs_root={tmp_path}")
    made.run()
    with pytest.raises(
        ConfigError, match=r"\d+ parameters, more than 1% off its budget of 100, so no check would pass"
    ):
        pack([made.settings.folder], tmp_path / "pack")
    assert not (tmp_path / "pack").exists()


def test_a_folder_with_something_in_it_is_left_alone(run: Path, packed: Path) -> None:
    with pytest.raises(ConfigError, match="is there already"):
        pack([run], packed)


def test_the_verb_packs_and_checks(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "mine"
    assert main(["submit", str(run.parent), "--to", str(place)]) == 0
    assert main(["submit", "--check", str(place), f"results_root={tmp_path}"]) == 0
    assert "1 runs pass" in capsys.readouterr().out
    forged(place, set_in("steps", to=5))
    assert main(["submit", "--check", str(place), f"results_root={tmp_path}"]) == 3
    assert capsys.readouterr().err.count("\n") == 1
    assert main(["submit"]) == 2


@pytest.mark.parametrize(
    "text", ["val/loss", "AMD EPYC 7B13", "Intel(R) Xeon(R) CPU @ 2.20GHz", "length/100:test/score", "1/2", "loss; 0.5"]
)
def test_words_of_a_record_are_no_paths(text: str) -> None:
    assert telling({"x": text, text: 1}) is None
