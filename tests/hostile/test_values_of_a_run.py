"""Every value in the files of a run may be of another kind: whoever reads them refuses them or is not misled."""

import copy
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

import orthobench
from orthobench.__main__ import main
from orthobench.config import recorded
from orthobench.errors import ConfigError, OrthobenchError, StorageError
from orthobench.recording.checkpoint import SafeCheckpointIO
from orthobench.recording.collect import collect
from orthobench.recording.digest import seal
from orthobench.recording.finished import finished
from orthobench.report.site.run_lines import run_lines
from orthobench.run.evaluate import evaluate
from orthobench.study.catalogue import SHIPPED
from orthobench.study.records import own_runs
from orthobench.study.reproduce.record_line import why_stale
from orthobench.study.verdicts import own_tables

WORDS = ("model=rnn", "task=copying", "T=5", "recipe=none", "model.hidden_size=4", "trainer.max_steps=1")
SIZES = ("task.val_size=2", "task.test_size=2")
WRONG = {"null": None, "a list": [1], "a word": "x", "a number": 5, "true": True}
PARTS = ("run_id", "status", "reason", "identity", "model", "task", "T", "seed", "steps", "epochs", "parameters",
         "budget", "baseline", "metrics", "best_step", "crossed", "checkpoint", "diverged", "orthogonality", "config",
         "sources", "code", "env", "hardware", "time", "engine", "curve", "lengths", "split", "schema")  # fmt: skip
INSIDE = (*(("config", name) for name in ("model", "task", "optimizer", "schedule", "trainer", "seed", "T")),
          *(("config", "model", "name"), ("config", "task", "name"), ("config", "optimizer", "name")),
          *(("sources", name) for name in ("plugins", "yaml", "data", "unverified")), ("sources", "data", "x"),
          *(("code", name) for name in ("version", "git", "dirty", "trained_with")), ("metrics", "best_val"),
          ("metrics", "best_val", "test/loss"), ("metrics", "last"), ("time", "wall_s"), ("time", "steps_per_s"),
          ("time", "finished"), ("hardware", "cpu"), ("hardware", "peak_bytes"), ("env", "torch"),
          ("env", "orthobench"), ("orthogonality", "max"), ("parameters", "total"), ("baseline", "loss"),
          ("checkpoint", "best"), ("curve", "val/loss"), ("engine", 0), ("engine", 0, "engine"))  # fmt: skip
DATA = ("/proc/kcore", "/proc/self/mem", "/dev/zero", "/**/*", "**/*", "../**/*", "../../**/*.py", "a/**/**/*", "\0",
        "**\0/*", "[", "**/[", "x" * 5000, "~root/.ssh/id_rsa", "/etc/passwd", "/", ".", "")  # fmt: skip
SETTINGS = ("T", "seed", "variant", "engine", "fork", "deviations", "data_root", "model", "task", "optimizer",
            "schedule", "trainer", "stopping", "logger", "diagnostics", "data", "model.name", "model.hidden_size",
            "model.layers", "model.dropout", "model.recurrent", "model.layer_sizes", "task.name",
            "task.batch_size", "task.val_size", "optimizer.lr", "optimizer.beta1", "trainer.max_steps",
            "trainer.accelerator", "trainer.val_check_interval")  # fmt: skip
EVALUATION = ("identity", "checkpoint", "task", "metrics", "baseline", "length", "examples", "unit")
LOOP = ("loops", "fit_loop")
CHECKPOINT = (
    *((key,) for key in ("global_step", "state_dict", "loops", "callbacks", "optimizer_states", "carried",
                         "pytorch-lightning_version")),
    (*LOOP, "epoch_loop.batch_progress"), (*LOOP, "epoch_loop.batch_progress", "current"),
    (*LOOP, "epoch_loop.batch_progress", "current", "ready"), (*LOOP, "epoch_progress", "current", "processed"),
    (*LOOP, "epoch_loop.automatic_optimization.optim_progress", "optimizer", "step", "total", "completed"),
    *(("callbacks", name) for name in ("Finite", "TrainingLog", "Orthogonality", "BaselineCrossing", "Saver")),
    ("callbacks", "TrainingLog", "train_s"), ("callbacks", "Orthogonality", "max"),
    *(("callbacks", "Saver", key) for key in ("best", "latest", "best_step", "best_test", "validated", "finished",
                                              "peak_bytes", "recovered_from", "code", "origin", "wall_s", "random",
                                              "curve")),
    ("callbacks", "Saver", "origin", "identity"), ("callbacks", "Saver", "origin", "sources"),
    ("optimizer_states", 0, "state"), ("optimizer_states", 0, "param_groups", 0, "params"),
)  # fmt: skip
TENSORS = {"gone": ..., "a word": "x", "a tensor": torch.zeros(2)}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of runs with a finished one, which tests only write into and put right again."""
    home = tmp_path_factory.mktemp("made")
    for seed in (1, 2):
        assert main([*WORDS, *SIZES, f"seed={seed}", f"runs_root={home}"]) == 0
    return home


@pytest.fixture
def own(made: Path, tmp_path: Path) -> Path:
    """The folder of the finished run of seed 1, beside that of seed 2."""
    shutil.copytree(made, tmp_path / "runs")
    return SHIPPED.settings([*WORDS, *SIZES, f"runs_root={tmp_path / 'runs'}"]).folder


def put(content: Any, place: tuple[Any, ...], value: Any) -> Any:
    """The content with another value in a place."""
    changed = copy.deepcopy(content)
    inner = changed
    for key in place[:-1]:
        inner = inner[key]
    if value is ...:
        del inner[place[-1]]
    else:
        inner[place[-1]] = value
    return changed


def read(folder: Path) -> list[Any]:
    """What every reader of a record makes of it, or the sentence with which it refuses it."""
    home, own = folder.parent, SHIPPED.settings([*WORDS, *SIZES, f"runs_root={folder.parent}"])
    readers: tuple[Callable[[], Any], ...] = (
        lambda: orthobench.records(home),
        lambda: orthobench.load(folder).checkpoint,
        lambda: finished(own),
        lambda: why_stale(own),
        lambda: list(collect(home, home.parent / "brought", "data")),
        lambda: own_tables.tables(own_runs.read([home]).finished),
        lambda: run_lines([], home, {}, home),
    )
    found = []
    for reader in readers:
        try:
            found.append(reader())
        except OrthobenchError as error:
            found.append(str(error))
    return found


@pytest.mark.sampled(10)
@pytest.mark.parametrize(
    ("place", "kind"),
    [
        *(((part,), kind) for part in PARTS for kind in ("null", "a list", "a word", "a number")),
        *((inside, kind) for inside in INSIDE for kind in ("a list", "true")),
    ],
    ids=lambda value: ".".join(map(str, value)) if isinstance(value, tuple) else value,
)
def test_a_value_of_a_record(place: tuple[Any, ...], kind: str, own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = own / "record.json"
    changed = put(json.loads(path.read_text()), place, WRONG[kind])
    path.write_text(json.dumps(seal(changed)))
    _, loaded, *_, rows, _ = read(own)
    assert isinstance(loaded, Path | str)
    assert not isinstance(rows, str), "the run beside it is shown"
    assert path.is_file()


@pytest.mark.parametrize("name", DATA, ids=lambda name: ascii(name)[:30])
@pytest.mark.sampled(12)
def test_data_that_a_record_names(name: str, own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = own / "record.json"
    changed = put(json.loads(path.read_text()), ("sources", "data"), {name: "0" * 64})
    path.write_text(json.dumps(seal(changed)))
    read(own)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", ["null", "a list", "true"])
@pytest.mark.parametrize("place", SETTINGS)
def test_a_setting_of_config_yaml(place: str, kind: str, own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORTHOBENCH_DATA", "data")  # which takes the place of data_root
    path = own / "config.yaml"
    content = yaml.safe_load(path.read_text())
    changed = put(content, tuple(place.split(".")), WRONG[kind])
    path.write_text(path.read_text().splitlines()[0] + "\n" + yaml.safe_dump(changed))
    try:
        digest = recorded.settings(changed, "data").digest
    except ConfigError:
        digest = ""
    if digest == recorded.settings(content).digest:
        assert orthobench.load(own).record["seed"] == 1
    else:
        with pytest.raises((ConfigError, StorageError), match=r"config\.yaml"):
            orthobench.load(own)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", ["null", "a list", "a word"])
@pytest.mark.parametrize("place", EVALUATION)
def test_a_value_of_an_evaluation(place: str, kind: str, own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (whole,) = evaluate(orthobench.load(own))
    (path,) = (own / "evaluations").iterdir()
    path.write_text(json.dumps(seal(json.loads(path.read_text()) | {place: WRONG[kind]})))
    assert main(["eval", str(own)]) == 0
    (again,) = evaluate(orthobench.load(own))
    assert again["metrics"] == whole["metrics"]
    assert again["found"]


@pytest.mark.sampled(10)
@pytest.mark.parametrize("kind", TENSORS)
@pytest.mark.parametrize("place", CHECKPOINT, ids=lambda p: ".".join(map(str, p)))
def test_a_value_of_a_checkpoint(
    place: tuple[Any, ...], kind: str, own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, record = own / "checkpoints" / "last.ckpt", json.loads((own / "record.json").read_text())
    changed = put(SafeCheckpointIO().load_checkpoint(path), place, TENSORS[kind])
    (own / "record.json").unlink()
    for old in (own / "checkpoints").iterdir():
        old.unlink()
    SafeCheckpointIO().save_checkpoint(changed, path)
    code = main([*WORDS, *SIZES, f"runs_root={own.parent}"])
    if code == 0:
        assert json.loads((own / "record.json").read_text())["metrics"] == record["metrics"]
    else:
        assert code == 6
        assert str(own) in capsys.readouterr().err
