"""Numbers that go wrong are named, never saved and never dropped."""

import re
from pathlib import Path

import pytest
import torch

from orthobench.errors import DivergedError
from orthobench.recording.checkpoint import SafeCheckpointIO
from orthobench.run.callbacks.finite import Finite
from tests.faults import runs
from tests.faults.conftest import Count, Server

EXPLODING = (
    "model=irnn",
    "task=adding",
    "optimizer=sgd",
    "optimizer.lr=1e30",
    *runs.SIZES,
    "trainer.max_steps=9",
    "trainer.val_check_interval=1",
)


def test_a_diverged_run_says_when_and_keeps_good_weights(server: Server, tmp_path: Path) -> None:
    assert server.run(tmp_path, *EXPLODING) == 4
    record = runs.record(tmp_path)
    assert record["status"] == "diverged"
    step, last = record["diverged"]["step"], record["diverged"]["last_loss"]
    assert step >= 2
    assert last is not None
    assert re.search(rf"not finite|is nan|is inf.* at step {step}; the last finite loss was", record["reason"])
    state = SafeCheckpointIO().load_checkpoint(runs.folder(tmp_path) / "checkpoints" / "last.ckpt")
    assert all(torch.isfinite(value).all() for value in state["state_dict"].values())
    assert "NaN" not in (runs.folder(tmp_path) / "record.json").read_text()
    assert server.run(tmp_path, *EXPLODING) == 4
    assert "is diverged already" in (tmp_path / "output.txt").read_text()


@pytest.mark.parametrize(
    ("loss", "gradient", "what"), [(float("nan"), 1.0, "loss is nan"), (1.0, float("inf"), "gradient's norm is inf")]
)
def test_loss_and_gradient_are_looked_at(loss: float, gradient: float, what: str) -> None:
    from types import SimpleNamespace as Fake

    p, other = torch.nn.Parameter(torch.zeros(2)), torch.nn.Parameter(torch.zeros(1))
    module, optimizer = Fake(loss=torch.tensor(0.5)), Fake(param_groups=[{"params": [other]}, {"params": [p]}])
    trainer, finite = Fake(global_step=6, precision="32-true"), Finite(10)
    finite.on_before_optimizer_step(trainer, module, optimizer)  # type: ignore[arg-type]
    module.loss, p.grad = torch.tensor(loss), torch.full((2,), gradient)
    with pytest.raises(DivergedError, match=f"{what} at step 7; the last finite loss was (0.5|1)"):
        finite.on_before_optimizer_step(trainer, module, optimizer)  # type: ignore[arg-type]
    assert finite.step == 7


def test_what_a_gpu_has_noted_is_the_first_bad_step() -> None:
    finite = Finite(10)
    finite._noted = torch.tensor(12), torch.tensor(0.25)
    with pytest.raises(
        DivergedError, match=r"loss or gradient is not finite at step 12; the last finite loss was 0.25"
    ):
        finite.check()


@pytest.mark.gpu
def test_a_gpu_notes_the_first_bad_step() -> None:
    from types import SimpleNamespace as Fake

    finite, p = Finite(100), torch.nn.Parameter(torch.zeros(2, device="cuda"))
    for step, (loss, gradient) in enumerate([(1.0, 1.0), (0.5, 1.0), (0.4, float("nan")), (float("nan"), 1.0)]):
        p.grad = torch.full((2,), gradient, device="cuda")
        module, optimizer = Fake(loss=torch.tensor(loss, device="cuda")), Fake(param_groups=[{"params": [p]}])
        finite.on_before_optimizer_step(Fake(global_step=step, precision="32-true"), module, optimizer)  # type: ignore[arg-type]
    with pytest.raises(DivergedError, match=r"at step 3; the last finite loss was 0.4"):
        finite.check()


@pytest.mark.parametrize("name", ["ncgru, reset inside", "svd", "geodesic", "ncgru, code"])
@pytest.mark.sampled(2)
def test_orthogonality_is_not_lost_in_a_sound_run(server: Server, tmp_path: Path, name: str) -> None:
    assert server.run(tmp_path, *runs.RUNS[name]) == 0
    assert runs.record(tmp_path)["orthogonality"]["lost"] is None


def test_lost_orthogonality_is_flagged(server: Server, tmp_path: Path) -> None:
    """Steps so large that the first term of the Neumann series no longer follows the inverse."""
    words = (
        "model=ncgru",
        "task=adding",
        "model.reset_period=1000",
        "model.order=1",
        "optimizer.lr_recurrent=0.06",
        *runs.SIZES,
        *runs.LENGTH,
    )
    assert server.run(tmp_path, *words) in (0, 4)
    found = runs.record(tmp_path)["orthogonality"]
    assert found["max"] is None or found["max"] > 0.1
    assert found["lost"] is not None
    told = f"a constrained matrix has left its set, as was first seen at step {found['lost']}"
    assert found["max"] is None or told in (tmp_path / "output.txt").read_text()


def test_a_killed_data_worker_stops_the_run_with_a_sentence(server: Server, tmp_path: Path) -> None:
    words = ("model=rnn", "task=failing", "task.how=kill", "task.num_workers=1", *runs.SIZES, "trainer.max_steps=5")
    assert server.run(tmp_path, *words) == 75
    output = (tmp_path / "output.txt").read_text()
    assert "a process that prepares batches was killed; the same command resumes the run" in output
    assert "Traceback" not in output
    assert runs.record(tmp_path)["status"] == "stopped"


BIG = ("model=scornn", "task=copying", "T=300", "recipe=none", "model.hidden_size=64", "task.batch_size=4096",
       "engine=reference", "task.train_size=null", "task.val_size=4",
       "task.test_size=4", "trainer.max_steps=2")  # fmt: skip


def test_what_does_not_fit_is_refused_with_the_numbers(server: Server, tmp_path: Path) -> None:
    assert server.run(tmp_path, *BIG, memory=400 << 20) == 2
    assert re.search(
        r"needs about [\d.]+ GiB and there are 0\.\d GiB: use at most", (tmp_path / "output.txt").read_text()
    )


@pytest.mark.faults
def test_out_of_memory_names_the_largest_batch_that_fits(server: Server, tmp_path: Path, count: Count) -> None:
    memory = 400 << 20
    assert server.run(tmp_path, *BIG, "force=true", memory=memory) == 5
    output = (tmp_path / "output.txt").read_text()
    found = re.search(r"out of memory with task.batch_size=4096; (\d+) fits", output)
    assert found, output
    assert runs.record(tmp_path)["status"] == "failed"
    fits = [word for word in BIG if "batch_size" not in word] + [f"task.batch_size={found[1]}"]
    assert server.run(tmp_path / "fits", *fits, "force=true", memory=memory) == 0, (
        tmp_path / "fits/output.txt"
    ).read_text()
    count("batches named after running out of memory that did fit")
