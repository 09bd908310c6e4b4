"""Opening a finished run: the weights that it was scored with, and nothing that is not its own."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import orthobench
from orthobench.errors import ConfigError, StorageError
from orthobench.recording.checkpoint import SafeCheckpointIO
from orthobench.recording.digest import write_sealed
from orthobench.recording.store import folder_of
from tests.conftest import write
from tests.run.finished import finished

BEFORE = Path(__file__).parents[1] / "made_before" / "recall-rnn-5613bd3813"
WORDS = {
    "scornn": ("model=scornn", "task=copying", "T=5"),
    "float64": ("model=lstm", "task=adding", "T=6", "trainer.precision=64"),
    "a kept inverse": ("model=ncgru", "task=copying", "T=5"),
    "a budget": ("model=gru", "task=copying", "T=5", "params=400", "model.hidden_size=null"),
    "a drawn delay": ("model=gru", "task=cued_copying", "task.delay=[2,4]"),
    "shares": ("model=sgornn", "task=copying", "T=5", "model.k=0.5"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return finished(tmp_path, *WORDS["scornn"])[0]


@pytest.mark.parametrize("name", [name for name in WORDS if name != "a budget"])
def test_settings_and_weights_are_the_runs_own(name: str, tmp_path: Path) -> None:
    folder, record = finished(tmp_path, *WORDS[name])
    run = orthobench.load(folder, which="last")
    state = SafeCheckpointIO().load_checkpoint(folder / "checkpoints" / "last.ckpt")["state_dict"]
    assert run.record == record
    assert run.settings.digest == record["identity"]
    assert run.step == record["steps"] == 2
    for key, value in run.model.state_dict().items():
        saved = state[f"model.{key}"]
        assert value.dtype == saved.dtype
        assert torch.equal(value, saved)


def test_a_budget_is_the_hidden_size_that_it_made(tmp_path: Path) -> None:
    words = ("model=gru", "task=copying", "T=5", "params=400", "recipe=none", "logger=none", "trainer.max_steps=1")
    exp = orthobench.build(*words, "task.test_size=5", "task.val_size=5", f"runs_root={tmp_path}")
    exp.run()
    run = orthobench.load(exp.settings.folder)
    assert run.settings.model["hidden_size"] == exp.settings.model["hidden_size"]
    assert run.settings.run_id == exp.run_id


def test_best_and_last_weights_are_told_apart(tmp_path: Path) -> None:
    folder, record = finished(tmp_path, "model=rnn", "task=adding", "T=6", "optimizer.lr=100")  # the second step harms
    assert record["best_step"] == 1
    best, last = orthobench.load(folder), orthobench.load(folder, which="last")
    assert (best.step, last.step) == (1, 2)
    assert not torch.equal(best.model.output_weight, last.model.output_weight)  # type: ignore[arg-type]


def test_a_run_is_found_by_its_name_and_one_of_an_earlier_version_is_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORTHOBENCH_RUNS", str(folder.parent))
    assert orthobench.load(folder.name).folder == folder
    with pytest.raises(ConfigError, match="is no run"):
        orthobench.load(folder.parent / "none")
    before = orthobench.load(BEFORE)
    assert (before.run_id, before.task.T) == (BEFORE.name, 5)


def sealed(**changes: Any) -> Callable[[Path], None]:
    """Another value in the record, whose digest is right."""
    return lambda folder: write_sealed(path := folder / "record.json", json.loads(path.read_text()) | changes)


def edited(name: str, old: str, new: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text((folder / name).read_text().replace(old, new))


def spoil_checkpoint(folder: Path) -> None:
    for path in (folder / "checkpoints").glob("*"):
        *content, last = path.read_bytes()
        path.write_bytes(bytes((*content, last ^ 1)))  # whatever it is, of a digest that differs by run


def swap_checkpoint(folder: Path) -> None:
    other, _ = finished(folder.parent, *WORDS["scornn"], "seed=2")
    shutil.rmtree(folder / "checkpoints")
    shutil.copytree(other / "checkpoints", folder / "checkpoints")


@pytest.mark.parametrize(
    ("spoil", "kind", "message"),
    [
        (sealed(status="stopped"), ConfigError, "is stopped: only a run that is done"),
        (lambda folder: (folder / "record.json").unlink(), ConfigError, "not run to its end"),
        (edited("record.json", '"steps": 2', '"steps": 3'), StorageError, "is damaged"),
        (sealed(identity="0" * 64), StorageError, "not of one run: record.json names 0000000000"),
        (edited("config.yaml", "seed: 1", "seed: 2"), StorageError, "not of one run: config.yaml's first line names"),
        (
            edited("config.yaml", "hidden_size: 4", "hiden_size: 4"),
            ConfigError,
            "by this version, .*: model.hiden_size",
        ),
        (spoil_checkpoint, StorageError, "no whole checkpoint"),
        (swap_checkpoint, StorageError, "whose digest record.json names"),
    ],
)
@pytest.mark.sampled(3)
def test_a_folder_that_is_not_one_whole_run_is_refused(spoil: Any, kind: Any, message: str, folder: Path) -> None:
    spoil(folder)
    with pytest.raises(kind, match=message):
        assert orthobench.load(folder).model


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ("adding-gru-0123456780", "did you mean adding-gru-0123456789\\?"),
        ("runs/adding-gru-0123", "did you mean adding-gru-0123456789\\?"),
        ("runs", "it is a folder of runs, so name one of them, such as adding-gru-0123456789."),
        ("elsewhere", "name the folder of a run, or set runs_root= to the folder of runs."),
    ],
)
def test_a_name_that_is_no_run_has_a_hint(
    named: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ORTHOBENCH_RUNS", raising=False)
    write(tmp_path, {"runs/adding-gru-0123456789/config.yaml": "{}"})
    with pytest.raises(ConfigError, match=f"^{named} is no run: .*{message}$"):
        orthobench.load(named)
    with pytest.raises(ConfigError, match="the name of a run is empty"):
        folder_of("")
