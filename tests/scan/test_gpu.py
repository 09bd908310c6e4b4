"""The same on a GPU: `pytest -m gpu -n 8`, within four minutes. Speed there is for `orthobench bench`.

Most of that time goes into compiling kernels, so that values are combined in turn and not each with each.
"""

import copy
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.func import functional_call, stack_module_state

import orthobench
from orthobench.cells.base import Cell
from orthobench.cells.complex_elman import ComplexElman
from orthobench.cells.deltaproduct import DeltaProduct
from orthobench.cells.elman import Elman
from orthobench.cells.goru import GORU
from orthobench.cells.gru import GRU
from orthobench.cells.lstm import LSTM
from orthobench.models.build import build_optimizer
from orthobench.run.training_step import TrainingStep
from orthobench.scan import ENGINES, choose, reference
from orthobench.scan.cuda import engine as cuda_engine
from orthobench.scan.fused import engine as fused
from orthobench.scan.fused import torch_kernels
from orthobench.scan.graph import capture
from orthobench.scan.graph import engine as graph
from orthobench.study.catalogue import SHIPPED
from tests.conftest import REPO
from tests.making import draw, random_cell
from tests.scan.native.cases import results
from tests.scan.test_engines import FAMILIES, tame

pytestmark = pytest.mark.gpu
DEVICE = "cuda"
TINY = (
    "T=20",
    "model.hidden_size=32",
    "trainer.max_steps=30",
    "trainer.val_check_interval=30",
    "task.val_size=40",
    "task.test_size=40",
)
# How much further from float64 than the loop in float32: sums have another order. A product of TensorFloat-32 would be
# 1,000 times as far.
ALLOWED = {"fused": 3, "graph": 3, "triton": 3, "cuda": 3}
CUDNNS_GATES = 100  # the gates of cuDNN's GRU and LSTM, which `fused` takes, are approximations to about 1e-5
SIZES = [(5, 3), (64, 50), (128, 17), (190, 50), (256, 160)]
every_engine = pytest.mark.parametrize("engine", list(ALLOWED))


def in_turn(*values: list[Any]) -> list[Any]:
    """Every family with the next of each list of values."""
    return [
        pytest.param(*family.values, *(own[i % len(own)] for own in values), id=str(family.id))
        for i, family in enumerate(FAMILIES)
    ]


@pytest.fixture(autouse=True)
def _float32_as_it_is() -> Iterator[None]:
    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False
    yield
    torch.set_float32_matmul_precision(before[0])
    torch.backends.cudnn.allow_tf32 = before[1]


def engine_for(name: str, cell: Cell) -> Any:
    problem = ENGINES[name].why_not(cell)
    if problem and any(words in problem for words in ("not installed", "hidden units")):
        pytest.skip(problem)
    assert problem is None, problem
    return ENGINES[name]


def on_gpu(cls: type, n: int, **options: Any) -> Cell:
    return tame(cls, n, **options).float().to(DEVICE)


def given(B: int, T: int, n: int) -> tuple[Tensor, tuple[Tensor, ...]]:
    return draw(B, T, 3).float().to(DEVICE), (draw(B, n, seed=1).float().to(DEVICE),)


@pytest.mark.parametrize("model", ["scornn", "lstm", "gru", "irnn"])
def test_it_trains_on_the_gpu_as_on_the_cpu(model: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    records = {}
    for accelerator in ("gpu", "cpu"):
        root = tmp_path_factory.mktemp(accelerator)
        words = (f"model={model}", "task=adding", *TINY, f"trainer.accelerator={accelerator}", f"runs_root={root}")
        records[accelerator] = orthobench.build(*words).run()
    assert records["gpu"]["hardware"]["device"] == "cuda"
    assert records["gpu"]["run_id"] == records["cpu"]["run_id"]
    losses = [records[name]["metrics"]["last"]["test/loss"] for name in ("gpu", "cpu")]
    assert losses[0] == pytest.approx(losses[1], rel=0.02)  # float32 on both, summed in another order


def test_a_matrix_is_orthogonal_on_the_gpu() -> None:
    W = orthobench.build("T=5").model.to("cuda").recurrent_weights()[0]
    deviation = torch.linalg.matrix_norm(W.T @ W - torch.eye(190, device="cuda"))
    assert deviation < 1e-4


@pytest.mark.parametrize("shift", [0, 2])
@pytest.mark.parametrize(("cls", "options", "activation", "place"), in_turn(["leaky_relu", "tanh"], list(range(5))))
@every_engine
def test_as_near_to_float64_as_the_loop(
    engine: str, cls: type, options: dict[str, Any], activation: Any, place: int, shift: int
) -> None:
    n, B = SIZES[(place + shift) % len(SIZES)]
    check_near(engine, on_gpu(cls, n, activation=activation, **options), *given(B, 40, n))


@pytest.mark.parametrize(("n", "B"), [(31, 3), (96, 5), (128, 50), (200, 20)])
@every_engine
def test_the_lstm_is_as_near_to_float64_as_the_loop(engine: str, n: int, B: int) -> None:
    x, (h0,) = given(B, 40, n)
    check_near(engine, on_gpu(LSTM, n), x, (h0, h0.flip(0)))


def check_near(engine: str, cell: Cell, x: Tensor, state: tuple[Tensor, ...]) -> None:
    module, double = engine_for(engine, cell), copy.deepcopy(cell).double()
    exact = results(reference.run, double, x.double(), tuple(s.double() for s in state))

    def error(run: Any) -> list[float]:
        return [
            sum(float((a - b).norm() / (1e-9 + b.norm())) for a, b in zip(found, wanted, strict=True))
            for found, wanted in zip(results(run, cell, x, state), exact, strict=True)
        ]

    results(module.run, cell, x, state)  # graph captures what comes again
    by_cudnn = engine == "fused" and torch_kernels.supports(cell) and len(cell.gates) > 1
    allowed = CUDNNS_GATES if by_cudnn else ALLOWED[engine]
    for own, oracle in zip(error(module.run), error(reference.run), strict=True):
        assert own <= allowed * oracle


@pytest.mark.parametrize(("cls", "options", "activation"), in_turn(["modrelu", "relu", "abs"]))
@every_engine
def test_at_kinks(engine: str, cls: type, options: dict[str, Any], activation: Any) -> None:
    """Over few steps, so that no state is near enough to a kink for a rounding to cross it."""
    cell, (x, state) = on_gpu(cls, 70, activation=activation, **options), given(20, 4, 70)
    module = engine_for(engine, cell)
    results(module.run, cell, x, state)
    for own, oracle in zip(results(module.run, cell, x, state), results(reference.run, cell, x, state), strict=True):
        for a, b in zip(own, oracle, strict=True):
            torch.testing.assert_close(a, b.expand_as(a), rtol=0, atol=2e-5 * (1 + float(b.abs().max())))


@pytest.mark.parametrize(("cls", "options"), FAMILIES[::2])
@every_engine
def test_the_same_bits_every_time(engine: str, cls: type, options: dict[str, Any]) -> None:
    cell, (x, state) = on_gpu(cls, 64, activation="modrelu", **options), given(50, 30, 64)
    module = engine_for(engine, cell)
    results(module.run, cell, x, state)
    first, second = ([t.clone() for part in results(module.run, cell, x, state) for t in part] for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("cls", [Elman, GRU, LSTM, GORU, ComplexElman, DeltaProduct])
def test_a_captured_loop_is_replayed(cls: type, capsys: pytest.CaptureFixture[str]) -> None:
    cell, x = random_cell(cls).to(DEVICE), draw(3, 12, 3).to(DEVICE)
    capture._warn.cache_clear()
    for scale in (1.0, 1.0, 2.0, 3.0):
        with torch.no_grad():
            cell.U.mul_(scale)
        found = []
        for engine in (graph, reference):
            cell.zero_grad()
            h_BTN, _ = engine.run(cell, x, cell.initial_state(3))
            h_BTN.abs().square().sum().backward()
            found.append([h_BTN.detach(), *(p.grad.clone() for p in cell.parameters() if p.grad is not None)])
        torch.testing.assert_close(*found, rtol=1e-9, atol=1e-9)
    assert not capsys.readouterr().err
    assert [len(programs or ()) for programs in graph.SHELVES[cell]._seen.values()] == [1]


def test_members_are_one_launch_with_the_numbers_of_each() -> None:
    members = [on_gpu(Elman, 64, activation="modrelu") for _ in range(3)]
    engine_for("cuda", members[0])
    with torch.no_grad():
        for i, member in enumerate(members):
            for p in member.parameters():
                p.mul_(1 - 0.1 * i)
    parameters, _ = stack_module_state(members)
    x = torch.stack([given(20, 12, 64)[0] * (i + 1) for i in range(3)])

    def run(own: dict[str, Tensor], x: Tensor) -> Tensor:
        return functional_call(Driven(members[0]), {f"cell.{key}": p for key, p in own.items()}, x)

    h = torch.func.vmap(run)(parameters, x)
    h.square().sum().backward()
    for i, member in enumerate(members):
        own = Driven(member)(x[i])
        torch.testing.assert_close(h[i], own, rtol=0, atol=1e-5)
        own.square().sum().backward()
        for name, p in member.named_parameters():
            scale = 1e-5 * (1 + float(p.grad.abs().max()))
            torch.testing.assert_close(parameters[name].grad[i], p.grad, rtol=0, atol=scale)


class Driven(torch.nn.Module):
    """A cell as a function of its parameters."""

    def __init__(self, cell: Cell) -> None:
        super().__init__()
        self.cell = cell

    def forward(self, x: Tensor) -> Tensor:
        return cuda_engine.run(self.cell, x, self.cell.initial_state(len(x)))[0]


@pytest.mark.parametrize("cls", [Elman, GRU])
@every_engine
def test_nothing_waits_for_the_gpu(engine: str, cls: type) -> None:
    cell, (x, state) = on_gpu(cls, 64, activation="modrelu"), given(20, 12, 64)
    module = engine_for(engine, cell)
    for _ in range(2):
        module.run(cell, x, state)[0].sum().backward()
    try:
        torch.cuda.set_sync_debug_mode("error")
        module.run(cell, x, state)[0].sum().backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("engine", ["graph", "auto"])
@pytest.mark.parametrize(
    "words",
    [
        ("model=scornn",),
        ("model=ncgru",),
        ("model=urnn_exp",),
        ("model=exprnn", "model.gradient=geodesic"),
        ("model=urnn_full", "model.rms_gradient=true"),
        ("model=spectral_rnn",),
        ("model=vprnn",),
        ("model=eunn",),
        ("model=goru",),
        ("model=lru",),
        ("model=deltaproduct", "model.gated=true"),
        ("model=mlstm", "model.input_convolution=4"),
    ],
)
def test_a_training_step_waits_for_nothing(words: tuple[str, ...], engine: str) -> None:
    exp = orthobench.build("task=copying", *TINY, *words, "recipe=none", f"engine={engine}")
    model = exp.model.to(DEVICE)
    step, optimizer = TrainingStep(model, exp.task), build_optimizer(exp.settings, model)
    batches = [[part.to(DEVICE) for part in exp.task.sample(4, seed)] for seed in range(6)]

    def train(batch: list[Tensor]) -> None:
        optimizer.zero_grad()
        step(batch, None)[0].backward()
        optimizer.step()
        for parametrization in model.constrained():
            parametrization.after_step()

    for batch in batches[:3]:
        train(batch)
    try:
        torch.cuda.set_sync_debug_mode("error")
        for batch in batches[3:]:
            train(batch)
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize(
    "model", [name for name in SHIPPED.options("model") if "mlp" not in name and "resnet" not in name][::3]
)
def test_a_run_of_replayed_steps_is_the_run_of_the_loop(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capture._warn.cache_clear()
    words = (f"model={model}", "task=adding", *TINY, "recipe=none", "trainer.accelerator=gpu")
    losses = [
        orthobench.build(*words, f"engine={engine}", f"runs_root={tmp_path / engine}").run()["metrics"]["last"]
        for engine in ("graph", "reference")
    ]
    assert losses[0] == pytest.approx(losses[1], rel=0.02)
    assert "could not capture" not in capsys.readouterr().err


def test_torchs_kernel_is_taken_where_it_computes_the_cell() -> None:
    assert choose(on_gpu(LSTM, 700))[0] == "fused"
    assert choose(on_gpu(Elman, 8, activation="modrelu"))[0] == "cuda"
    assert choose(on_gpu(Elman, 900, activation="modrelu"))[0] == "graph"
    assert fused.why_not(on_gpu(Elman, 300)) is None


WITHOUT_COMPILER = """
import torch
from tests.scan import test_gpu
h, _ = test_gpu.fused.run(test_gpu.on_gpu(test_gpu.Elman, 8, activation="modrelu"), *test_gpu.given(3, 4, 8))
h.sum().backward()
"""


def test_activations_are_torchs_without_a_compiler(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    environment = os.environ | {"CC": "/nowhere/cc", "TRITON_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", WITHOUT_COMPILER]
    done = subprocess.run(command, cwd=REPO, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "so activations are torch's operations." in done.stderr


def test_an_evaluation_has_a_gradient() -> None:
    cell, x = on_gpu(LSTM, 300).eval(), given(3, 4, 300)[0]
    assert torch_kernels.supports(cell)
    torch_kernels.run(cell, x, cell.initial_state(3))[0].sum().backward()
    assert cell.U.grad.isfinite().all()


@pytest.mark.parametrize("engine", ["fused", "graph", "auto"])
def test_a_deterministic_run_repeats_itself(engine: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    metrics = []
    try:
        for name in "ab":
            words = ("model=scornn", "task=copying", *TINY, "trainer.accelerator=gpu", "trainer.deterministic=true")
            root = tmp_path_factory.mktemp(name)
            metrics.append(orthobench.build(*words, f"engine={engine}", f"runs_root={root}").run()["metrics"])
    finally:
        torch.use_deterministic_algorithms(False)
    assert metrics[0] == metrics[1]


def test_a_run_in_mixed_precision_is_near_the_run_in_float32() -> None:
    words = ("model=scornn", "task=copying", *TINY, "trainer.accelerator=gpu")
    losses = [
        orthobench.build(*words, *more).run()["metrics"]["last"]["test/loss"]
        for more in ((), ("trainer.precision=bf16-mixed",))
    ]
    assert losses[1] == pytest.approx(losses[0], rel=0.02)
