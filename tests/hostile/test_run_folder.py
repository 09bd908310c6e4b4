"""A run's folder whose files are not what they should be is named, with exit 6, or made again; it is never believed."""

import json
import os
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from orthobench.__main__ import main
from orthobench.errors import StorageError
from orthobench.recording.checkpoint import SafeCheckpointIO, digest_of
from orthobench.recording.digest import seal
from orthobench.study.records import records

WORDS = ["model=rnn", "task=copying", "T=5", "recipe=none", "model.hidden_size=4", "trainer.max_steps=4"]
WORDS += ["trainer.val_check_interval=2", "task.val_size=8", "task.test_size=8"]
State = dict[str, Any]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("finished")
    for seed in (1, 2):
        assert main([*WORDS, f"seed={seed}", f"runs_root={home}"]) == 0
    return home


@pytest.fixture
def runs(finished: Path, tmp_path: Path) -> Path:
    shutil.copytree(finished, tmp_path / "runs", dirs_exist_ok=True)
    return tmp_path / "runs"


def folder(runs: Path, seed: int = 1) -> Path:
    found = (path.parent for path in runs.glob("*/record.json"))
    return next(one for one in found if json.loads((one / "record.json").read_text())["seed"] == seed)


def again(runs: Path) -> int:
    return main([*WORDS, f"runs_root={runs}"])


RECORDS: dict[str, Any] = {
    **{
        f"{key} is null": {key: None}
        for key in ("run_id", "status", "model", "task", "seed", "steps", "code", "env", "time")
    },
    **{
        f"{key} is a list": {key: [1]}
        for key in ("run_id", "status", "metrics", "config", "sources", "code", "hardware")
    },
    **{
        f"{key} is a word": {key: "x"}
        for key in ("seed", "steps", "baseline", "parameters", "orthogonality", "engine", "T")
    },
    **{f"{key} is a number": {key: 5} for key in ("identity", "checkpoint", "curve", "sources", "lengths", "metrics")},
    "scores are a list": {"metrics": {"best_val": [1]}},
    "a score is a word": {"metrics": {"best_val": {"test/loss": "x"}, "last": {}}},
    "plug-ins are a number": {"sources": {"plugins": 3}},
    "a digest is a number": {"sources": {"data": {"x": 3}}},
    "a checkpoint's digest is a list": {"checkpoint": {"best": [1]}},
    "an engine is a word": {"engine": ["x"]},
    "no identity": {"identity": [None]},
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", RECORDS)
def test_a_record(kind: str, runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder(runs) / "record.json"
    whole = json.loads(path.read_text())
    path.write_text(json.dumps(seal(whole | RECORDS[kind])))
    assert main(["eval", str(path.parent)]) == 6
    assert str(path) in capsys.readouterr().err
    assert main(["compare", str(runs)]) == 0, "the other run"
    assert again(runs) == 0
    made = json.loads(path.read_text())
    assert made["metrics"] == whole["metrics"]
    assert (made["status"], made["run_id"], made["steps"]) == ("done", whole["run_id"], whole["steps"])


def weights(state: State, change: Callable[[torch.Tensor], torch.Tensor]) -> None:
    state["state_dict"] = {name: change(value) for name, value in state["state_dict"].items()}


CHECKPOINTS: dict[str, Callable[[State], object]] = {
    "weights are NaN": lambda state: weights(state, lambda value: value * float("nan")),
    "weights are infinite": lambda state: weights(state, lambda value: value + float("inf")),
    "weights of another shape": lambda state: weights(state, lambda value: torch.zeros(3, 3, 3)),
    "weights of another name": lambda state: state["state_dict"].update(x=torch.zeros(1)),
    "no weights": lambda state: state["state_dict"].clear(),
    "a word for weights": lambda state: state.update(state_dict="x"),
    "words as weights": lambda state: state.update(state_dict={"x": "y"}),
    "nothing": lambda state: state.clear(),
    "no step": lambda state: state.pop("global_step"),
    "a step that is a word": lambda state: state.update(global_step="x"),
    "no callbacks": lambda state: state.update(callbacks={}),
    "a word for what it has come to": lambda state: state["callbacks"].update(Saver="x"),
    "a list for its origin": lambda state: state["callbacks"]["Saver"].update(origin=[1]),
    "no loops": lambda state: state.update(loops=None),
}
RESUMED: dict[str, Callable[[State], object]] = {
    "no optimizer": lambda state: state.update(optimizer_states=[{}]),
    "two optimizers": lambda state: state.update(optimizer_states=state["optimizer_states"] * 2),
    "other groups": lambda state: state["optimizer_states"][0].update(param_groups=[]),
    "groups that are words": lambda state: state["optimizer_states"][0].update(param_groups=["x"]),
    "curves that are damaged": lambda state: state["callbacks"]["Saver"].update(
        curve=torch.zeros(9, dtype=torch.uint8)
    ),
    "curves that are cut": lambda state: state["callbacks"]["Saver"].update(
        curve=state["callbacks"]["Saver"]["curve"][:20]
    ),
    "curves of half a gigabyte": lambda state: state["callbacks"]["Saver"].update(curve=bomb()),
}

TENSORS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "sparse": lambda value: value.to_sparse(),
    "compressed rows": lambda value: value.reshape(1, -1).to_sparse_csr(),
    "quantized": lambda value: torch.quantize_per_tensor(value.float(), 0.1, 0, torch.qint8),
    "on meta": lambda value: value.to("meta"),
    "expanded to 10^12": lambda value: torch.zeros(()).expand(10**12),
    "expanded in its own shape": lambda value: torch.zeros(()).expand(value.shape),
    "of eight bits": lambda value: value.to(torch.float8_e5m2),
    "unsigned": lambda value: torch.zeros(value.shape, dtype=torch.uint32),
}
CHECKPOINTS |= {f"weights {kind}": lambda state, make=make: weights(state, make) for kind, make in TENSORS.items()}
RESUMED |= {
    f"a state of the optimizer {kind}": lambda state, make=make: state["optimizer_states"][0].update(
        state={0: {"exp_avg": make(torch.ones(4, 4))}}
    )
    for kind, make in TENSORS.items()
}


def bomb() -> torch.Tensor:
    packer = zlib.compressobj(1)
    parts = [packer.compress(bytes(1 << 24)) for _ in range(32)]
    return torch.frombuffer(bytearray(b"".join(parts) + packer.flush()), dtype=torch.uint8)


def rewrite(home: Path, change: Callable[[State], object]) -> None:
    """Change a run's checkpoints, and let the record name the digests of what they are now."""
    for old in (home / "checkpoints").glob("*.previous"):
        old.unlink()
    for path in list((home / "checkpoints").glob("*.ckpt")):
        state = SafeCheckpointIO().load_checkpoint(path)
        change(state)
        path.unlink()
        SafeCheckpointIO().save_checkpoint(state, path)
    record = json.loads((home / "record.json").read_text())
    names = {name: digest_of(home / "checkpoints" / f"{name}.ckpt") for name in record["checkpoint"]}
    (home / "record.json").write_text(json.dumps(seal(record | {"checkpoint": names})))


@pytest.mark.sampled(6)
@pytest.mark.filterwarnings("ignore")  # of torch's, about kinds of tensors
@pytest.mark.parametrize("kind", [*CHECKPOINTS, *RESUMED])
def test_a_checkpoint(kind: str, runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = folder(runs)
    rewrite(home, {**CHECKPOINTS, **RESUMED}[kind])
    if kind in CHECKPOINTS:
        assert main(["eval", str(home)]) == 6
    (home / "record.json").unlink()
    assert again(runs) == 6
    assert str(home) in capsys.readouterr().err


@pytest.mark.parametrize("name", ["record.json", "checkpoints", "config.yaml"])
def test_files_of_another_run(name: str, runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home, other = folder(runs), folder(runs, 2)
    if name == "checkpoints":
        shutil.rmtree(home / name)
        shutil.copytree(other / name, home / name)
        assert main(["eval", str(home)]) == 6
        (home / "record.json").unlink()
    else:
        shutil.copy(other / name, home / name)
        assert main(["eval", str(home)]) == 6
        if name == "config.yaml":
            (home / "record.json").unlink()
    assert again(runs) == 6
    assert "another run's" in capsys.readouterr().err


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", ["a pipe", "a device", "a folder"])
@pytest.mark.parametrize(
    "name",
    ["record.json", "metrics.csv", "config.yaml", "claim.json", "checkpoints/last.ckpt", "checkpoints/best.ckpt"],
)
def test_what_is_no_file(name: str, kind: str, runs: Path) -> None:
    path = folder(runs) / name
    if path.exists():
        path.unlink()
    if name != "record.json":
        (folder_of := path.parents[1] if "/" in name else path.parent) and (folder_of / "record.json").unlink()
    if kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a device":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()
    home = path.parents[1] if "/" in name else path.parent
    assert main(["eval", str(home)]) in (2, 6)
    assert main(["compare", str(runs)]) == 0
    assert again(runs) in (0, 6)


LINES = {
    "an open quote": b'run_id,preset,cell,seed,status\n"x,full,a,1,done\n' + b"y" * 150_000,
    "a null byte": b"run_id,preset,cell,seed,status\nx\0,full,a,x,done\n",
    "a seed of 5,000 digits": b"run_id,preset,cell,seed,status\nx,full,a," + b"9" * 5000 + b",done\n",
    "no header": b"x,full,a,1,done\ny,full,a,2,done\n",
    "UTF-16": "run_id,preset\nx,full\n".encode("utf-16"),
}


@pytest.mark.parametrize("kind", [*LINES, "a pipe", "a device"])
def test_records_of_a_table(kind: str, tmp_path: Path) -> None:
    path = records.path_of(tmp_path, "scornn/table1")
    path.parent.mkdir(parents=True)
    if kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a device":
        path.symlink_to("/dev/zero")
    else:
        path.write_bytes(LINES[kind])
    if kind != "a pipe":
        with pytest.raises(StorageError, match=r"table1\.csv is (damaged|a link)"):
            records.read(tmp_path, "scornn/table1")
    else:
        assert records.read(tmp_path, "scornn/table1") == []
