"""Folders with weights in safetensors, written and read back; those of somebody else that are not whole."""

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

import orthobench
from orthobench.__main__ import main
from orthobench.common.packages import install
from orthobench.errors import ConfigError, OrthobenchError, StorageError
from orthobench.recording.digest import write_sealed
from tests.conftest import Refused
from tests.run.finished import finished

safetensors = pytest.importorskip("safetensors.torch", reason="safetensors is not installed: see the extra `share`")


def shared(root: Path, *words: str) -> Path:
    folder, _ = finished(root / "runs", *words)
    assert main(["export", str(folder), "--format", "safetensors", "--last"]) == 0
    return Path(shutil.copytree(folder / "exports" / "last-safetensors", root / "given"))


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shared(tmp_path_factory.mktemp("shared"), "model=scornn", "task=adding", "T=5")


@pytest.mark.parametrize(
    "words", [("model=scornn",), ("model=urnn_full",), ("model=lstm", "task=copying"), ("model=lru", "model.layers=2"),
              ("model=gru", "trainer.precision=64-true"), ("model=lstm", "task=mqar", "model.embedding_size=4")],
    ids=" ".join,
)  # fmt: skip
def test_a_shared_network_computes_the_same_bits(words: tuple[str, ...], tmp_path: Path) -> None:
    words = words if "task=mqar" in words else (*words, "T=9")
    task = () if any(word.startswith("task=") for word in words) else ("task=adding",)
    given = shared(tmp_path, *words, *task)
    (folder,) = (tmp_path / "runs").glob("*-*")
    old, new = orthobench.load(folder, which="last"), orthobench.load(given)
    x = old.task.batch("test", 0, 0)[0]
    x = x.double() if x.is_floating_point() and new.settings.trainer.get("precision") else x
    assert torch.equal(old.model(x)[0], new.model(x)[0])
    assert (new.which, new.step, new.run_id) == ("last", old.step, old.run_id)
    assert new.record["metrics"] == old.record["metrics"]
    assert torch.equal(new.task.batch("test", 0, 0)[0], old.task.batch("test", 0, 0)[0])


def test_the_card_is_in_the_form_of_hugging_face(one: Path) -> None:
    _, head, text = (one / "README.md").read_text().split("---\n", 2)
    found = yaml.safe_load(head)
    run = orthobench.load(one)
    (result,) = found["model-index"][0]["results"]
    assert found["library_name"] == "orthobench"
    scores = {score["type"]: score["value"] for score in result["metrics"]}
    assert scores == run.record["metrics"]["last"]
    assert result["task"]["type"]
    assert result["dataset"]["type"] == "adding"
    assert 'orthobench.load("FOLDER")' in text
    assert str(one.parent) not in (one / "config.json").read_text(), "no path of the machine"


def tensors(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    """A change of the tensors, which the digest in config.json follows."""

    def do(folder: Path) -> None:
        found = safetensors.load_file(folder / "model.safetensors")
        change(found)
        replace(folder, safetensors.save(found))

    return do


def replace(folder: Path, content: bytes) -> None:
    import hashlib

    (folder / "model.safetensors").write_bytes(content)
    kept = json.loads((folder / "config.json").read_text())
    write_sealed(folder / "config.json", kept | {"weights": hashlib.sha256(content).hexdigest()})


def flipped(folder: Path) -> None:
    content = bytearray((folder / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (folder / "model.safetensors").write_bytes(content)


def linked(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "elsewhere")
    (folder / "model.safetensors").symlink_to("elsewhere")


def large(folder: Path) -> None:
    os.truncate(folder / "model.safetensors", 1 << 30)


def config(**changes: Any) -> Callable[[Path], None]:
    def do(folder: Path) -> None:
        write_sealed(folder / "config.json", json.loads((folder / "config.json").read_text()) | changes)

    return do


def other_size(folder: Path) -> None:
    kept = json.loads((folder / "config.json").read_text())
    kept["settings"]["model"]["hidden_size"] = 5
    write_sealed(folder / "config.json", kept)


def own_file(folder: Path) -> None:
    kept = json.loads((folder / "config.json").read_text())
    kept["settings"]["task"] = {"name": "series", "path": "/etc/passwd"}
    write_sealed(folder / "config.json", kept)


NAME = "output_bias"
WRONG: dict[str, tuple[Callable[[Path], None], type[OrthobenchError], str]] = {
    "flipped": (flipped, StorageError, "its digest is not the one in config.json"),
    "link": (linked, StorageError, "is a link, which is not followed"),
    "large": (large, StorageError, r"has 1,073,741,824 bytes, and the model of config.json has at most 100,000,\d+"),
    "no weights": (lambda folder: (folder / "model.safetensors").unlink(), StorageError, "is missing"),
    "no config": (lambda folder: (folder / "config.json").unlink(), StorageError, "missing, damaged or not of"),
    "edited": (lambda folder: (folder / "config.json").write_text("{}"), StorageError, "missing, damaged or not of"),
    "garbage": (lambda folder: replace(folder, b"\xff" * 64), StorageError, "is no file of safetensors"),
    "name": (tensors(lambda found: found.pop(NAME)), StorageError, f"has no tensor '{NAME}'"),
    "more": (tensors(lambda found: found.update(a=found[NAME].clone())), StorageError, "has an unknown tensor 'a'"),
    "shape": (tensors(lambda found: found.update({NAME: torch.zeros(3)})), StorageError, r"is \(3,\) in float32"),
    "dtype": (tensors(lambda found: found.update({NAME: found[NAME].int()})), StorageError, r"is \(1,\) in int32"),
    "nan": (tensors(lambda found: found.update({NAME: torch.tensor([np.nan])})), StorageError, "not finite"),
    "form": (config(form=2), ConfigError, "has the form 2, and this version reads 1"),
    "other settings": (other_size, StorageError, "is not of one run"),
    "own file": (own_file, ConfigError, "a file of somebody's own, which is not read"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_folder_that_is_not_whole_is_refused(kind: str, one: Path, tmp_path: Path) -> None:
    spoil, error, told = WRONG[kind]
    folder = Path(shutil.copytree(one, tmp_path / "given"))
    spoil(folder)
    with pytest.raises(error, match=told):
        _ = orthobench.load(folder).model


def test_other_weights_than_it_holds_are_refused(one: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(one, tmp_path / "given"))
    config(which="best")(folder)
    with pytest.raises(ConfigError, match="holds the best weights: which='last' needs"):
        orthobench.load(folder, which="last")


def test_a_run_on_a_file_of_ones_own_is_not_shared(tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "mine.txt").write_text("the cat sat on the mat\n" * 200)
    words = ("model=gru", "task=text", f"task.path={tmp_path / 'mine.txt'}", "T=5", "model.hidden_size=4")
    exp = orthobench.build(*words, "trainer.max_steps=2", "recipe=none", "logger=none", f"runs_root={tmp_path}")
    exp.run()
    refused(["export", str(exp.settings.folder), "--format", "safetensors"], "was trained on a file of your own")


def test_the_missing_library_is_named(one: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orthobench.run.shared.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=re.escape(install("share"))):
        orthobench.load(one)
