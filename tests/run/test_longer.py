"""A longer run that goes on from a shorter one, a run that starts from another's weights, and runs that are there."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

import orthobench
from orthobench.__main__ import main
from orthobench.errors import ConfigError, StorageError
from orthobench.recording.checkpoint import SafeCheckpointIO
from orthobench.recording.claim import Claim
from tests.run.callbacks.test_finite import SMALL

WORDS = ("model=ncgru", *SMALL[1:], "trainer.val_check_interval=2")


def trained(root: Path, steps: int, *words: str) -> tuple[Path, dict[str, Any]]:
    exp = orthobench.build(*WORDS, f"trainer.max_steps={steps}", *words, f"runs_root={root}")
    return exp.settings.folder, exp.run()


def weights(folder: Path, name: str = "last") -> dict[str, torch.Tensor]:
    return SafeCheckpointIO().load_checkpoint(folder / "checkpoints" / f"{name}.ckpt")["state_dict"]


@pytest.mark.parametrize(
    "words",
    [(), ("schedule=exponential",), ("task.train_size=12", "trainer.max_epochs=100")],
    ids=lambda w: " ".join(w),
)
@pytest.mark.sampled(1)
def test_a_longer_run_has_the_bits_of_one_that_was_trained_alone(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alone, expected = trained(tmp_path / "alone", 8, *words)
    short, _ = trained(tmp_path / "both", 4, *words)
    capsys.readouterr()
    folder, record = trained(tmp_path / "both", 8, *words)
    out = capsys.readouterr().out
    assert f"{short.name} has its first 4 steps: going on from them" in out
    assert "resuming at step 4" in out
    assert folder.name == alone.name
    for name in ("last", "best"):
        ours, theirs = weights(folder, name), weights(alone, name)
        assert all(torch.equal(ours[key], theirs[key]) for key in theirs)
    for key in ("metrics", "best_step", "steps", "epochs", "orthogonality", "identity"):
        assert record[key] == expected[key], key
    assert {name: len(points) for name, points in record["curve"].items()} == {
        name: len(points) for name, points in expected["curve"].items()
    }
    assert json.loads((short / "record.json").read_text())["steps"] == 4


@pytest.mark.parametrize(
    ("steps", "words", "reason"),
    [
        (4, ("schedule=linear",), "schedule=linear depends on the length"),
        (3, (), "this run has no validation after step 3"),
    ],
)
def test_why_a_longer_run_starts_from_the_beginning(
    steps: int, words: tuple[str, ...], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trained(tmp_path, steps, *words)
    capsys.readouterr()
    _, record = trained(tmp_path, 8, *words)
    out = capsys.readouterr().out
    assert f"but {reason}" in out
    assert "resuming" not in out
    assert record["steps"] == 8


@pytest.mark.parametrize(
    ("name", "harm", "told"),
    [
        ("last.ckpt.previous", "damage", "its last checkpoint is damaged or missing: starting from the beginning"),
        ("last.ckpt.previous", "another run's", "last.ckpt.previous is another run's"),
        ("best.ckpt", "another run's", "best.ckpt is another run's"),
    ],
)
def test_a_checkpoint_that_is_damaged_or_of_another_run_is_not_gone_on_from(
    name: str, harm: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = trained(tmp_path, 4)[0] / "checkpoints" / name
    if harm == "damage":
        path.write_bytes(b"x" * 100)
    else:
        shutil.copy(trained(tmp_path / "other", 4, "seed=2")[0] / "checkpoints" / name, path)
    capsys.readouterr()
    _, record = trained(tmp_path, 8)
    assert told in capsys.readouterr().out
    assert (record["status"], record["steps"]) == ("done", 8)


def test_a_disk_that_refuses_the_checkpoint_that_is_gone_on_from_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained(tmp_path, 4)

    def refuse(*_: Any) -> None:
        raise StorageError("the disk is full.")

    monkeypatch.setattr(SafeCheckpointIO, "save_checkpoint", refuse)
    with pytest.raises(StorageError, match="the disk is full"):
        trained(tmp_path, 8)


@pytest.mark.parametrize("word", ["seed=2", "optimizer.lr=0.002", "model.hidden_size=5"])
@pytest.mark.sampled(1)
def test_another_run_is_not_gone_on_from(word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trained(tmp_path, 4)
    capsys.readouterr()
    trained(tmp_path, 8, word)
    assert "first 4 steps" not in capsys.readouterr().out


def test_a_run_starts_from_the_best_weights_of_another(tmp_path: Path) -> None:
    source, _ = trained(tmp_path, 4)
    exp = orthobench.build(*WORDS, "T=9", f"init_from={source.name}", f"runs_root={tmp_path}")
    own = weights(source, "best")
    assert all(torch.equal(value, own[f"model.{key}"]) for key, value in exp.model.state_dict().items())
    plain = orthobench.build(*WORDS, "T=9", f"runs_root={tmp_path}")
    by_path = orthobench.build(*WORDS, "T=9", f"init_from={source}", f"runs_root={tmp_path}")
    assert exp.run_id != plain.run_id
    assert exp.run_id == by_path.run_id


@pytest.mark.parametrize("name", ["best", "adding-ncgru-0123456789"])
def test_a_run_under_another_name_is_refused(name: str, tmp_path: Path) -> None:
    """Two of one name would make one run of what starts from either."""
    source, _ = trained(tmp_path, 2)
    copied = tmp_path / name
    shutil.copytree(source, copied)
    with pytest.raises(ConfigError, match=f"init_from={copied} is the run {source.name} under another name"):
        orthobench.build(*WORDS, "T=9", f"init_from={copied}", f"runs_root={tmp_path}").run()
    assert orthobench.load(copied).run_id == source.name, "a copy can be looked at"


def test_weights_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    source, _ = trained(tmp_path, 2)
    exp = orthobench.build(*WORDS, "model.hidden_size=5", f"init_from={source.name}", f"runs_root={tmp_path}")
    with pytest.raises(ConfigError, match=f"init_from={source.name} does not fit"):
        _ = exp.model
    with pytest.raises(ConfigError, match="nowhere is no run"):
        _ = orthobench.build(*WORDS, "init_from=nowhere", f"runs_root={tmp_path}").model


def test_a_run_that_is_done_tells_its_score(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, record = trained(tmp_path, 2)
    capsys.readouterr()
    assert main([*WORDS, "trainer.max_steps=2", f"runs_root={tmp_path}"]) == 0
    score = f"test loss {record['metrics']['best_val']['test/loss']:.4g} (baseline 0.1667)"
    assert score in capsys.readouterr().out


def test_a_run_that_is_running_elsewhere_is_not_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = (*WORDS, "trainer.max_steps=2", f"runs_root={tmp_path}")
    with Claim(orthobench.build(*words).settings.folder):
        assert main([*words]) == 75
    assert "is running elsewhere: process " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "steps", "cap"),
    [
        (("trainer.max_steps=1000000",), 1_000_000, 300),
        (("trainer.max_steps=10",), 10, None),
        (("trainer.max_steps=1000000", "trainer.max_epochs=1"), None, None),
    ],
)
def test_a_typed_number_of_steps_beats_the_recipes_epochs(
    words: tuple[str, ...], steps: int | None, cap: int | None
) -> None:
    exp = orthobench.build("model=sgornn", "task=har2", *words)
    assert exp.settings.cap == cap
    assert exp.duration.steps == (steps or exp.duration.epoch_steps)
