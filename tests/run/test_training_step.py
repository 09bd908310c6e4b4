"""A training step that is captured as a whole: what a replay, which knows no Python, makes of every model."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import orthobench
from orthobench.parametrizations import base
from orthobench.recording.curve import Curve
from orthobench.run.training_step import TrainingStep
from orthobench.scan.fused import engine as fused
from orthobench.scan.graph import capture
from orthobench.scan.graph import engine as graph
from orthobench.study.catalogue import SHIPPED
from tests.recorded import Recorded

TINY = (
    "T=6", "recipe=none", "model.hidden_size=8", "task.train_size=80", "task.val_size=20", "task.test_size=20",
    "task.batch_size=10", "logger=none", "trainer.accelerator=cpu", "trainer.max_steps=12",
    "trainer.val_check_interval=5", "trainer.log_every_n_steps=4", "optimizer.lr=0.01",
)  # fmt: skip
SLOW = pytest.mark.slow
RECURRENT = [
    name for name in SHIPPED.options("model") if name not in ("mlp", "resnet", "spectral_mlp", "spectral_resnet")
]


@pytest.fixture(autouse=True)
def _as_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a model that is where the engine can run it until somebody takes it to the CPU."""
    taken = set()
    take = nn.Module.cpu
    monkeypatch.setattr(nn.Module, "cpu", lambda self: (taken.update(map(id, self.modules())), take(self))[1])
    monkeypatch.setattr(graph, "why_not", lambda cell: "it is for CUDA devices" if id(cell) in taken else None)
    monkeypatch.setattr(capture, "Graph", Recorded)
    monkeypatch.setattr(capture.Shelf, "closed", False)
    monkeypatch.setattr(base, "reading_waits", lambda t: True)
    monkeypatch.setattr(Recorded, "reverses", [0, 0])
    monkeypatch.setattr(Recorded, "autocast_reverses", 0)
    capture._warn.cache_clear()


def build(*words: str) -> Any:
    return orthobench.build(*TINY, *words)


def plain_engine(*words: str) -> str:
    return "fused" if all(fused.why_not(cell) is None for cell in build(*words).model.cells) else "reference"


def both_ways(tmp_path: Path, *words: str) -> list[dict[str, Any]]:
    engines = ("graph", plain_engine(*words))
    return [build(*words, f"engine={name}", f"runs_root={tmp_path / name}").run() for name in engines]


def assert_equal(replayed: dict[str, Any], plain: dict[str, Any], tolerance: float = 1e-6) -> None:
    """But for the last bits: first steps and evaluations are made by other kernels."""
    losses = [[value for _, value in record["curve"]["train/loss"]] for record in (replayed, plain)]
    assert losses[0] == pytest.approx(losses[1], rel=tolerance)
    for which in ("best_val", "last"):
        assert replayed["metrics"][which] == pytest.approx(plain["metrics"][which], rel=10 * tolerance)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("task", ["copying", "adding"])
@pytest.mark.parametrize(
    "model",
    [name if name in ("scornn", "ncgru", "urnn_full") else pytest.param(name, marks=SLOW) for name in RECURRENT],
)
def test_a_run_of_replays_is_the_same_run(
    model: str, task: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    replayed, plain = both_ways(tmp_path, f"model={model}", f"task={task}")
    assert_equal(replayed, plain)
    assert Recorded.reverses[1] == 11, "all but the first step"
    assert "could not" not in capsys.readouterr().err


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "words",
    [
        ("model=scornn", "model.layers=2"),
        ("model=ncgru", "trainer.gradient_clip_val=0.1"),
        ("model=gru", "trainer.accumulate_grad_batches=2"),
        ("model=urnn_full", "model.rms_gradient=true"),
        ("model=urnn_full", "trainer.accumulate_grad_batches=2"),
        ("model=urnn_full", "model.rms_gradient=true", "trainer.accumulate_grad_batches=2"),
        ("model=gru", "model.recurrent_gradient_clip=1e-3", "trainer.accumulate_grad_batches=2"),
        ("model=exprnn", "model.gradient=geodesic", "trainer.accumulate_grad_batches=2"),
        ("model=exprnn", "model.gradient=geodesic"),
        ("model=scornn", "model.embedding_size=5", "schedule=linear"),
        ("model=vprnn", "optimizer=rmsprop_tf"),
    ],
)
def test_what_stands_around_a_step(words: tuple[str, ...], tmp_path: Path) -> None:
    replayed, plain = both_ways(tmp_path, "task=copying", *words)
    assert_equal(replayed, plain)
    assert Recorded.reverses[0] >= 1


@pytest.mark.parametrize("model", ["scornn", "ncgru", "urnn_exp", "goru", "eunn"])
@pytest.mark.sampled(2)
def test_mixed_precision_casts_the_weights_at_every_step_and_nothing_on_the_way_back(
    model: str, tmp_path: Path
) -> None:
    """Gradients of what is cast more than once meet in bfloat16 outside of a capture, and in float32 inside."""
    replayed, plain = both_ways(tmp_path, f"model={model}", "task=copying", "trainer.precision=bf16-mixed")
    assert_equal(replayed, plain, tolerance=1e-3)
    assert Recorded.reverses[1] == 11
    assert Recorded.autocast_reverses == 0


def test_dropout_is_drawn_anew_at_every_replay() -> None:
    exp = build("model=lstm", "task=copying", "engine=graph", "model.dropout=0.5")
    step, batch = TrainingStep(exp.model, exp.task), exp.task.sample(4, 0)
    losses = {float(step(batch, None)[0].detach()) for _ in range(8)}
    assert len(losses) == 8
    assert Recorded.reverses[0] == 1


@pytest.mark.parametrize("model", ["scornn", "lstm", "urnn_full"])
def test_the_state_is_carried(model: str) -> None:
    words, results, captured = (f"model={model}", "task=copying"), [], []
    for engine in ("graph", plain_engine(*words)):
        exp, state, found = build(*words, f"engine={engine}"), None, []
        step = TrainingStep(exp.model, exp.task)
        for seed in range(6):
            exp.model.zero_grad()
            loss, after = step(exp.task.sample(4, seed), state)
            loss.backward()
            for p in exp.model.parametrizations():
                p.after_step()
            state = [tuple(s.detach() for s in layer) for layer in after]
            gradients = [p.grad for p in exp.model.parameters() if p.grad is not None]
            found += [loss.detach(), *gradients, *(s for layer in state for s in layer)]
        if engine == "graph":
            captured = [programs for programs in step._shelf._seen.values() if programs]
        results.append(found)
    torch.testing.assert_close(*results, rtol=1e-5, atol=1e-6)
    assert len(captured) == 1, "with a state; without one there was one step only"


def test_lengths_that_vary_are_left_to_the_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    exp = build("model=scornn", "task=copying", "engine=graph")
    step = TrainingStep(exp.model, exp.task)
    for _ in range(2):
        for T in (3, 4, 5):
            step(build("model=scornn", "task=copying", f"T={T}").task.sample(4, 0), None)[0].backward()
    assert list(step._shelf._seen.values()) == [[], []]
    assert len(graph.SHELVES[exp.model.cells[0]]._seen) == 3


def test_what_cannot_be_captured_runs_step_by_step(capsys: pytest.CaptureFixture[str]) -> None:
    exp = build("model=scornn", "task=copying", "engine=graph")
    loss = exp.task.loss

    def reads(y: Tensor, target: Tensor) -> Tensor:
        return loss(y, target) * float(y.detach().new_ones(()))

    exp.task.loss = reads
    step = TrainingStep(exp.model, exp.task)
    values = [float(step(exp.task.sample(4, 0), None)[0].detach()) for _ in range(3)]
    assert len(set(values)) == 1
    err = capsys.readouterr().err
    assert "engine=graph could not capture a training step, so its cells are captured one by one: " in err
    assert len(err.splitlines()) == 1
    assert not capture.Shelf.closed, "it was found out before the capture"


def test_the_matrices_are_made_outside_of_a_captured_step(monkeypatch: pytest.MonkeyPatch) -> None:
    exp = build("model=scornn", "task=copying", "engine=graph")
    step, (cell,), seen = TrainingStep(exp.model, exp.task), exp.model.cells, []
    matrix = type(cell.recurrent["h"]).forward
    monkeypatch.setattr(
        type(cell.recurrent["h"]), "forward", lambda self: (seen.append(capture.under_way()), matrix(self))[1]
    )
    for seed in range(4):
        step(exp.task.sample(4, seed), None)[0].backward()
    assert seen == [False] * 4
    assert Recorded.reverses[1] == 3
    assert "matrices" not in vars(cell)


@pytest.mark.parametrize("failures", [1, 2])
def test_after_a_step_that_failed_half_way_the_cells_are_captured(
    failures: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done, real = [], Recorded.capture

    def fails(self: Recorded, work: Any, after: Any = None) -> Any:
        done.append(1)
        if len(done) <= failures:
            raise RuntimeError("operation not permitted when stream is capturing")
        return real(self, work, after)

    monkeypatch.setattr(Recorded, "capture", fails)
    exp = build("model=scornn", "task=copying", "engine=graph")
    step, plain = TrainingStep(exp.model, exp.task), build("model=scornn", "task=copying", "engine=fused")
    for seed in range(4):
        loss = step(exp.task.sample(4, seed), None)[0]
        expected = TrainingStep(plain.model, plain.task)(exp.task.sample(4, seed), None)[0]
        assert float(loss.detach()) == pytest.approx(float(expected.detach()), rel=1e-6)
    programs = [free for free in graph.SHELVES[exp.model.cells[0]]._seen.values() if free is not None]
    assert capture.Shelf.closed == (failures == 2)
    assert len(programs) == (1 if failures == 1 else 0)
    assert capsys.readouterr().err.count("could not capture") == failures


def test_after_a_cell_that_failed_half_way_there_is_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: Recorded, work: Any, after: Any = None) -> Any:
        raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(Recorded, "capture", fails)
    exp = build("model=scornn", "task=copying", "engine=graph")
    step, tried = TrainingStep(exp.model, exp.task), []
    init = capture.Program.__init__
    monkeypatch.setattr(capture.Program, "__init__", lambda self, *a: (tried.append(1), init(self, *a))[1])
    for T in (6, 6, 5, 5, 5):
        step(build("model=scornn", "task=copying", f"T={T}").task.sample(4, 0), None)[0].backward()
    assert capture.Shelf.closed
    assert len(tried) == 2, "the step, and then its cell"


def test_a_parameter_that_has_moved_is_another_program() -> None:
    exp = build("model=scornn", "task=copying", "engine=graph")
    step, batch = TrainingStep(exp.model, exp.task), exp.task.sample(4, 0)
    first = [float(step(batch, None)[0].detach()) for _ in range(2)]
    for p in exp.model.parameters():
        p.data = p.data.clone().mul_(1.5)
    moved = [float(step(batch, None)[0].detach()) for _ in range(2)]
    assert moved == [pytest.approx(float(step._plain(batch, None)[0].detach()), rel=1e-6)] * 2
    assert moved[0] != pytest.approx(first[0], rel=1e-3)


def test_what_listens_to_a_step_hears_it(tmp_path: Path) -> None:
    words = ("model=urnn_exp", "model.gradient=lie_algebra", "task=copying", "engine=graph", f"runs_root={tmp_path}")
    exp = build(*words)
    exp.run()
    rows = Curve(exp.settings.folder / "metrics.csv").rows()
    assert [row["step"] for row in rows if row["name"] == "gradient_cosine"] == [4, 8, 12]
    assert Recorded.reverses == [2, 11], "the loop alone was replayed in the three steps that were listened to"
