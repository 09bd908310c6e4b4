"""A run that was stopped or killed and started again ends with the numbers of one that was not."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest
import torch

import orthobench
from orthobench.errors import Stopped
from orthobench.run.callbacks.saver import Saver
from orthobench.run.run import Run

SMALL = (
    "task.val_size=50",
    "task.test_size=50",
    "task.train_size=120",
    "task.batch_size=20",
    "T=8",
    "model.hidden_size=8",
)
RUNS = {
    "scornn with dropout": ("task=copying", "model.dropout=0.2", *SMALL),
    "two optimizers": ("task=adding", *SMALL),
    "fresh data, schedule": ("task=adding", "schedule=linear", *SMALL[:2], *SMALL[3:], "task.train_size=null"),
    "accumulated gradients": ("model=lstm", "task=copying", "trainer.accumulate_grad_batches=2", *SMALL),
    "workers": ("model=gru", "task=copying", "task.num_workers=2", *SMALL),
}
LENGTH = ("trainer.max_steps=12", "trainer.val_check_interval=4", "trainer.log_every_n_steps=3")


def build(root: Path, name: str) -> Run:
    return orthobench.build(*RUNS[name], *LENGTH, f"runs_root={root}")


def stop_at(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if SIGTERM arrived during `step`."""
    begin = Saver.on_train_batch_start

    def arrive(self: Saver, trainer: Any, module: Any, batch: Any, index: int) -> None:
        begin(self, trainer, module, batch, index)
        if trainer.global_step == step - 1:
            self.stop_requested = signal.SIGTERM

    monkeypatch.setattr(Saver, "on_train_batch_start", arrive)


def outcome(exp: Run, record: dict[str, Any]) -> dict[str, Any]:
    rows = (exp.settings.folder / "metrics.csv").read_text().splitlines()
    kept = ("metrics", "best_step", "crossed", "orthogonality", "steps", "epochs")
    return {**{key: record[key] for key in kept}, "rows": [row for row in rows if "steps_per_s" not in row]}


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    found = {}
    for name in RUNS:
        exp = build(tmp_path_factory.mktemp("unbroken"), name)
        result = outcome(exp, exp.run())
        found[name] = result, {key: value.clone() for key, value in exp.model.state_dict().items()}
    return found


@pytest.mark.sampled(6)
@pytest.mark.parametrize("step", [1, 3, 4, 5, 8, 11])
@pytest.mark.parametrize("name", RUNS)
def test_stopped_and_resumed_is_bitwise_the_same(
    name: str, step: int, unbroken: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "workers" and step not in (3, 4):
        pytest.skip("starting worker processes is slow; two points are enough")
    with monkeypatch.context() as patch:
        stop_at(step, patch)
        with pytest.raises(Stopped, match=f"at step {step}"):
            build(tmp_path, name).run()
    stopped = json.loads((build(tmp_path, name).settings.folder / "record.json").read_text())
    assert (stopped["status"], stopped["steps"]) == ("stopped", step)
    exp = build(tmp_path, name)
    result, weights = unbroken[name]
    assert outcome(exp, exp.run()) == result
    assert all(torch.equal(value, weights[key]) for key, value in exp.model.state_dict().items())


def test_a_damaged_checkpoint_gives_way_to_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "scornn with dropout"
    with monkeypatch.context() as patch:
        stop_at(9, patch)
        with pytest.raises(Stopped):
            build(tmp_path, name).run()
    path = build(tmp_path, name).settings.folder / "checkpoints" / "last.ckpt"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
    record = build(tmp_path, name).run()
    assert record["status"] == "done"
    assert record["steps"] == 12
    assert "last.ckpt.previous" in record["recovered_from"]


@pytest.mark.gpu
@pytest.mark.parametrize("engine", ["graph", "auto"])
def test_on_a_gpu_masks_and_carried_states_go_on_as_they_were(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for the last bits, as the first steps of a process are made by other kernels."""
    text = tmp_path / "text.txt"
    text.write_text("the quick brown fox jumps over the lazy dog. " * 200, encoding="utf-8")
    task = ("task=text", f"task.path={text}", "task.windows=carried", "T=8", "task.batch_size=4", *LENGTH)
    words = ("model=lstm", "recipe=none", "model.hidden_size=16", "model.dropout=0.5", *task, f"engine={engine}")
    whole = orthobench.build(*words, f"runs_root={tmp_path / 'whole'}").run()
    with monkeypatch.context() as patch:
        stop_at(6, patch)
        with pytest.raises(Stopped):
            orthobench.build(*words, f"runs_root={tmp_path / 'stopped'}").run()
    record = orthobench.build(*words, f"runs_root={tmp_path / 'stopped'}").run()
    assert record["metrics"]["last"] == pytest.approx(whole["metrics"]["last"], rel=1e-4)
