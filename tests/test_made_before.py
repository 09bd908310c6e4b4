"""What earlier versions made is still valid: run ids, a run's folder, a checkpoint, and import paths of plug-ins."""

import importlib
import json
import shutil
from pathlib import Path

import pytest

import orthobench
from orthobench.tasks.drawn.adding import Adding
from orthobench.tasks.real import series
from tests.conftest import RECALL, Refused

BEFORE = Path(__file__).parent / "made_before"
RUN = "recall-rnn-5613bd3813"
RUN_IDS = json.loads((BEFORE / "run_ids.json").read_text())


@pytest.mark.sampled(12)
@pytest.mark.parametrize("words", RUN_IDS)
def test_run_ids_stay(words: str) -> None:
    assert orthobench.build(*words.split()).run_id == RUN_IDS[words]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(BEFORE / RUN, tmp_path / "runs" / RUN))


def test_a_finished_run_is_found_done(folder: Path) -> None:
    record = orthobench.build(*RECALL, f"runs_root={folder.parent}").run()
    assert record == json.loads((BEFORE / RUN / "record.json").read_text())


def test_a_checkpoint_is_resumed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = json.loads((folder / "record.json").read_text())
    (folder / "record.json").unlink()
    record = orthobench.build(*RECALL, f"runs_root={folder.parent}").run()
    assert "resuming at step 2" in capsys.readouterr().out
    for weights in ("best_val", "last"):  # another processor may round the last digit otherwise
        assert record["metrics"][weights] == pytest.approx(before["metrics"][weights], rel=1e-6)


def test_an_old_path_has_the_same_class() -> None:
    assert importlib.import_module("orthobench.tasks.adding").Adding is Adding
    assert importlib.import_module("orthobench.tasks.series").Series is series.Series


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("schema", "common.schema", "Positive"), ("registry", "common.registry", "find"),
        ("optim", "models.optim", "Adam"), ("schedules", "models.schedules", "Linear"),
        ("initializers", "parametrizations.initializers", "uniform"),
    ],
)  # fmt: skip
def test_what_a_cell_or_a_rule_of_ones_own_imports(old: str, new: str, name: str) -> None:
    found = importlib.import_module(f"orthobench.{old}")
    assert getattr(found, name) is getattr(importlib.import_module(f"orthobench.{new}"), name)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("tasks.addign", r"No module named .orthobench.tasks.addign"),
        ("analysis.statistics", r"orthobench.analysis is orthobench.study now"),
    ],
)
def test_a_module_that_is_gone_names_the_new_one(name: str, told: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=told):
        importlib.import_module(f"orthobench.{name}")


@pytest.mark.parametrize("place", ["slurm", "local"])
def test_a_word_of_an_earlier_version(place: str, refused: Refused) -> None:
    old, new = (f"hydra/launcher={name}" for name in (f"submitit_{place}", place))
    refused(["-m", "T=5,6", old], f"{old} is {new} now")


def test_a_name_of_a_run_of_an_earlier_version() -> None:
    exp = orthobench.build("model=rnn", "task=recall", "T=5", "model.hidden_size=4")
    with pytest.raises(AttributeError, match=r"exp.datamodule is exp.task now"):
        _ = exp.datamodule
