"""The runs that are broken off, and what must be the same afterwards."""

import json
from pathlib import Path
from typing import Any

import torch

from orthobench.recording.checkpoint import SafeCheckpointIO

SIZES = (
    "T=6",
    "model.hidden_size=6",
    "recipe=none",
    "task.val_size=20",
    "task.test_size=20",
    "task.train_size=70",
    "task.batch_size=10",
)
LENGTH = ("trainer.max_steps=24", "trainer.val_check_interval=5", "trainer.log_every_n_steps=2")
TEXT = ("task=small_text", "recipe=none", "model.hidden_size=6", *LENGTH)
RUNS: dict[str, tuple[str, ...]] = {
    "scornn, dropout": ("model=scornn", "task=copying", "model.dropout=0.2", *SIZES, *LENGTH),
    "scornn, two optimizers": ("model=scornn", "task=adding", "optimizer.recurrent=rmsprop", *SIZES, *LENGTH),
    "ncgru, reset inside": ("model=ncgru", "task=adding", "model.reset_period=7", *SIZES, *LENGTH),
    "ncgru, code": ("model=ncgru", "task=adding", "model.reset_period=7", "variant=code", *SIZES, *LENGTH),
    "geodesic": ("model=urnn_exp", "task=copying", "model.gradient=geodesic", *SIZES, *LENGTH),
    "svd": ("model=spectral_rnn", "task=adding", *SIZES, *LENGTH),
    "carried state": ("model=lstm", "model.dropout=0.1", *TEXT),
    "carried state, lengths drawn": ("model=ncgru", "task.random_bptt=true", "T=10", *TEXT),
    "schedule, momentum": (
        "model=vprnn",
        "task=copying",
        "schedule=linear",
        "optimizer=sgd",
        "optimizer.momentum=0.9",
        *SIZES,
        *LENGTH,
    ),
    "accumulated gradients": ("model=gru", "task=copying", "trainer.accumulate_grad_batches=2", *SIZES, *LENGTH),
}
SHORT = (
    "model=scornn",
    "task=copying",
    "model.dropout=0.2",
    *SIZES,
    "trainer.max_steps=6",
    "trainer.val_check_interval=3",
    "trainer.log_every_n_steps=2",
)
MODEL = ("task=adding", *(word for word in SIZES if "hidden" not in word), "model.hidden_size=8", *LENGTH)
UNSTEADY = (
    "code",
    "time",
    "recovered_from",
    "checkpoint",
    "config",
    "sha256",
    "env",
    "hardware",
    "engine",
    "metrics_csv",
    "attempts",
)


def folder(home: Path) -> Path:
    (found,) = (path for path in (home / "runs").iterdir() if not path.name.startswith("."))
    return found


def record(home: Path) -> dict[str, Any]:
    return json.loads((folder(home) / "record.json").read_text())


def outcome(home: Path) -> dict[str, Any]:
    """The numbers and the weights of a finished run, and what lies in its folder."""
    run = folder(home)
    numbers = {key: value for key, value in record(home).items() if key not in UNSTEADY}
    rows = [row for row in (run / "metrics.csv").read_text().splitlines() if "steps_per_s" not in row]
    files = sorted(str(path.relative_to(run)) for path in run.rglob("*") if not path.name.endswith(".previous"))
    state = {name: checkpoint(run / "checkpoints" / f"{name}.ckpt") for name in ("last", "best")}
    return {"numbers": numbers, "rows": rows, "files": files, "weights": state["last"]["state_dict"], "held": state}


def checkpoint(path: Path) -> dict[str, Any]:
    """All that a checkpoint holds but for times, code and memory; tensors as their bytes."""
    state = SafeCheckpointIO().load_checkpoint(path)
    for callback in state["callbacks"].values():
        for name in ("wall_s", "train_s", "finished", "peak_bytes", "code", "recovered_from", "curve", "attempts"):
            callback.pop(name, None)
    return _plain(state)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.numpy().tobytes().hex() if isinstance(value, torch.Tensor) else value
