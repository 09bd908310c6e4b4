"""Mixed precision, deterministic algorithms, and no waiting for a GPU inside the training loop."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import orthobench
from orthobench.errors import ConfigError
from orthobench.parametrizations import base
from orthobench.parametrizations.base import Parametrization
from orthobench.parametrizations.plane_rotations import PlaneRotations
from orthobench.run.task_data import TaskData
from orthobench.scan.native import plane_rotations

TINY = (
    "T=6", "model.hidden_size=8", "task.train_size=40", "task.val_size=20", "task.test_size=20", "logger=none",
    "trainer.accelerator=cpu", "trainer.val_check_interval=1000", "trainer.log_every_n_steps=1000",
)  # fmt: skip


def trained(*words: str, steps: int = 6) -> dict[str, Any]:
    return orthobench.build("task=copying", *TINY, f"trainer.max_steps={steps}", *words).run()


@pytest.mark.parametrize("word", ["16", "16-mixed"])
def test_half_precision_on_a_cpu_would_be_another_and_is_refused(word: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="precision=16 needs a GPU"):
        trained("model=gru", f"trainer.precision={word}", f"runs_root={tmp_path}")
    assert not list(tmp_path.glob("*/config.yaml")), "before anything is begun"


@pytest.mark.parametrize("engine", ["reference", "fused", "auto"])
@pytest.mark.parametrize("model", ["scornn", "ncgru", "urnn_exp", "sgornn", "lstm"])
@pytest.mark.sampled(5)
def test_mixed_precision_leaves_the_recurrence_in_float32(
    model: str, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[torch.dtype, bool]] = []
    call, plan = Parametrization.__call__, plane_rotations.plan

    def watched(self: Parametrization) -> Tensor:
        W = call(self)
        seen.append((W.dtype, torch.is_autocast_enabled("cpu")))
        return W

    def watched_plan(W: PlaneRotations) -> Tensor:  # where the rotations are applied and W is not computed
        seen.append((W.theta.dtype, torch.is_autocast_enabled("cpu")))
        return plan(W)

    monkeypatch.setattr(Parametrization, "__call__", watched)
    monkeypatch.setattr(plane_rotations, "plan", watched_plan)
    exp = orthobench.build(f"model={model}", "task=copying", *TINY, f"engine={engine}")
    x, _ = exp.task.sample(4, 0)
    exact, _ = exp.model(x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y, (state,) = exp.model(x)
    assert set(seen) == {(torch.float32, False)}
    assert state[0].dtype == torch.float32
    torch.testing.assert_close(y.float(), exact, rtol=0, atol=0.05 * float(exact.detach().abs().max()))
    assert not torch.equal(y.float(), exact)


def test_a_run_in_mixed_precision_is_near_the_run_in_float32() -> None:
    exact, mixed = trained("model=scornn"), trained("model=scornn", "trainer.precision=bf16-mixed")
    assert mixed["run_id"] != exact["run_id"]
    assert mixed["orthogonality"]["max"] < 1e-4
    losses = [record["metrics"]["last"]["test/loss"] for record in (exact, mixed)]
    assert losses[1] == pytest.approx(losses[0], rel=0.02)


def test_deterministic_algorithms(tmp_path: Path) -> None:
    words = ("model=scornn", "trainer.deterministic=true")
    try:
        first, second = (trained(*words, f"runs_root={tmp_path / name}") for name in "ab")
    finally:
        torch.use_deterministic_algorithms(False)
    assert first["metrics"] == second["metrics"]


class Reads(TorchDispatchMode):
    """Counts values that Python reads from tensors, each of which waits for a GPU.

    Left out is what is done on CPUs only: looking at every loss.
    """

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (torch.ops.aten._local_scalar_dense.default, torch.ops.aten.equal.default):
            frame, names = sys._getframe(), set()
            while frame is not None:
                names.add(Path(frame.f_code.co_filename).name)
                frame = frame.f_back
            self.count += "finite.py" not in names
        return func(*args, **(kwargs or {}))


@pytest.mark.slow
@pytest.mark.parametrize(
    "model", ["scornn", "spectral_rnn", "vprnn", "sgornn", "lstm", "goru", "eunn", "urnn_exp", "ncgru", "urnn_full"]
)
def test_a_step_reads_no_value(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "reading_waits", lambda t: True)
    counts = []
    for steps in (4, 9):
        with Reads() as reads:
            trained(f"model={model}", "recipe=none", "engine=reference", steps=steps)
        counts.append(reads.count)
    assert counts[0] == counts[1] > 0


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_batches_for_a_gpu_are_pinned_so_that_their_copies_wait_for_nothing(device: str) -> None:
    task: Any = orthobench.build("task=copying", *TINY).task
    data: Any = TaskData(task)
    assert not data.train_dataloader().pin_memory
    data.trainer = SimpleNamespace(strategy=SimpleNamespace(root_device=torch.device(device)))
    assert data.train_dataloader().pin_memory == data.test_dataloader().pin_memory == (device == "cuda")
