"""Which engine `auto` takes on a GPU, and what is said where an engine cannot run."""

import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import orthobench
from orthobench.__main__ import main
from orthobench.bench import scans
from orthobench.cells.complex_elman import ComplexElman
from orthobench.cells.deltaproduct import DeltaProduct
from orthobench.cells.elman import Elman
from orthobench.cells.gru import GRU
from orthobench.cells.lstm import LSTM
from orthobench.cells.mingru import MinGRU
from orthobench.errors import ConfigError
from orthobench.run.memory import estimate
from orthobench.scan import ENGINES, Engine, choose, recurrence, reference, words
from orthobench.scan.cuda import engine as cuda_engine
from orthobench.scan.fused import engine as fused
from orthobench.scan.fused import pointwise, torch_kernels
from orthobench.scan.gpu import choice, costs
from orthobench.scan.graph import engine as graph_engine
from orthobench.scan.triton import engine as triton_engine
from tests.conftest import REPO
from tests.making import draw, random_cell
from tests.scan.test_engines import Halved

LARGE = {"hidden_size": 600}


@pytest.fixture
def _can_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both engines with a kernel for the whole sequence, as where they are installed; their numbers are the loop's."""
    monkeypatch.setattr(choice, "_FAILURES", {})
    for engine in (cuda_engine, triton_engine):
        monkeypatch.setattr(engine, "missing", lambda *_: None)
        monkeypatch.setattr(engine, "run", reference.run)


@pytest.mark.usefixtures("_can_run")
@pytest.mark.parametrize(
    ("cls", "options", "taken", "without_cuda", "without_both"),
    [
        (Elman, {"activation": "modrelu"}, "cuda", "triton", "graph"),
        (Elman, {"activation": "modrelu", "hidden_size": 300}, "cuda", "graph", "graph"),
        (GRU, {"reset": "before"}, "cuda", "triton", "graph"),
        (GRU, {"reset": "before", "hidden_size": 190}, "cuda", "graph", "graph"),
        (Elman, {"activation": "relu", **LARGE}, "cuda", "fused", "fused"),
        (LSTM, LARGE, "fused", "fused", "fused"),
        (LSTM, {"peephole": True}, "graph", "graph", "graph"),
        (ComplexElman, {"hidden_size": 190}, "graph", "graph", "graph"),
        (ComplexElman, {"hidden_size": 100}, "triton", "triton", "graph"),
        (Halved, {}, "reference", "reference", "reference"),
    ],
)
def test_automatic_choice_on_a_gpu(
    cls: type, options: dict[str, Any], taken: str, without_cuda: str, without_both: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    cell = random_cell(cls, **options)
    assert choose(cell, device="cuda")[0] == taken
    monkeypatch.setattr(cuda_engine, "missing", lambda *_: "NVRTC is missing")
    assert choose(cell, device="cuda")[0] == without_cuda
    monkeypatch.setattr(triton_engine, "missing", lambda *_: "the package triton is not installed")
    assert choose(cell, device="cuda")[0] == without_both


@pytest.mark.usefixtures("_can_run")
def test_the_choice_weighs_what_a_step_costs_and_says_so() -> None:
    cell = random_cell(Elman, hidden_size=190, activation="modrelu")
    assert re.search(r"about [\d.]+ us a step, measured on an NVIDIA H200 \(", choose(cell, device="cuda")[1])
    few, many = (choice.prices(cell, sequences)["cuda"] for sequences in (50, 500))
    assert few < many < 10 * few, "programs beside each other cost less than one after another"


@pytest.mark.usefixtures("_can_run")
def test_numbers_measured_on_the_device_take_the_place_of_the_shipped_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(choice, "device_name", lambda: "Some GPU (80 GB)")
    costs.measured_on.cache_clear()
    cell = random_cell(Elman, hidden_size=128, activation="modrelu")
    assert "scaled from an NVIDIA H200" in choose(cell, device="cuda")[1]
    slow = [("elman", "cuda", 128, 30.0), ("elman", "triton", 128, 4.2)]
    path = costs.keep("Some GPU (80 GB)", slow)
    assert path == tmp_path / "orthobench" / "costs" / "some-gpu-80-gb.csv"
    name, why = choose(cell, device="cuda", sequences=50)
    assert (name, why) == ("triton", "one kernel each way: about 4.2 us a step, measured here (cuda 30)")
    path.write_text("device,family,way,n,us\nSome GPU,elman,cuda,128,fast\n")
    costs.measured_on.cache_clear()
    assert choose(cell, device="cuda")[0] == "cuda"
    assert "is damaged" in capsys.readouterr().err
    costs.measured_on.cache_clear()


@pytest.mark.usefixtures("_can_run")
def test_a_measurement_that_was_cut_short_keeps_what_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Later numbers join those of other sizes, and families that are not measured here have the shipped ones."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    costs.measured_on.cache_clear()
    costs.keep("Some GPU", [("elman", "cuda", 128, 30.0), ("elman", "triton", 128, 4.2)])
    costs.keep("Some GPU", [("elman", "cuda", 190, 40.0), ("elman", "triton", 128, 4.0)])
    assert costs.of_device("Some GPU")["elman", "cuda"] == [(128, 30.0), (190, 40.0)]
    assert costs.of_device("Some GPU")["elman", "triton"] == [(128, 4.0)]
    assert costs.of_device("Some GPU")["gru", "cuda"] == costs.of_device(None)["gru", "cuda"]
    assert costs.source("Some GPU", "elman") == "measured here"
    assert costs.source("Some GPU", "gru") == "scaled from an NVIDIA H200"
    costs.measured_on.cache_clear()


MEASURED = [
    (family, n) for family in costs.MATRICES for n in sorted({row[0] for row in costs.of_device(None)[family, "cuda"]})
]
LIKE = {"elman": [(Elman, {"activation": "modrelu"}), (Elman, {"activation": "relu"})], "lstm": [(LSTM, {})],
        "gru": [(GRU, {"activation": "modrelu"}), (GRU, {"double_bias": True})]}  # fmt: skip


@pytest.mark.usefixtures("_can_run")
@pytest.mark.parametrize(("family", "n"), MEASURED)
@pytest.mark.parametrize("without", [(), ("cuda",), ("cuda", "triton")], ids=str)
@pytest.mark.parametrize("device", ["NVIDIA H200", "NVIDIA H100 80GB HBM3"])
def test_the_fastest_way_that_was_measured_is_taken(
    device: str, without: tuple[str, ...], family: str, n: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the shipped table's rows, by a reading of its own; on a card that has none, by the same ones."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(choice, "device_name", lambda: device)
    monkeypatch.setattr(graph_engine, "why_not", lambda cell: None)
    for engine in (cuda_engine, triton_engine):
        if engine.__name__.split(".")[-2] in without:
            monkeypatch.setattr(engine, "missing", lambda *_: "it is not installed")
    rows = [row.split(",") for row in costs.SHIPPED.read_text().splitlines()[1:]]
    for cls, options in LIKE[family]:
        cell = random_cell(cls, hidden_size=n, **options)
        us = {way: float(cost) for _, own, way, size, cost in rows if (own, int(size)) == (family, n)}
        us = {way: cost for way, cost in us.items() if way not in without}
        if cell.torch_kernel() is None:
            us.pop("torch", None)
        name, why = choose(cell, device="cuda", sequences=costs.SEQUENCES)
        assert name == min(us, key=us.__getitem__).replace("torch", "fused")
        assert ("scaled from" in why) == (device != costs.SHIPPED_DEVICE) or name == "graph"


@pytest.mark.parametrize("engine", choice.KERNELS)
def test_an_engine_has_one_pair_of_kernels_for_each_family(engine: str) -> None:
    """The pairs that were slower at every size are gone; `triton` has a family of its own, complex states."""
    files = [file for kind in ("py", "cuh") for file in Path(costs.__file__).parents[1].glob(f"{engine}/*.{kind}")]
    text = "\n".join(file.read_text() for file in files)
    found = re.findall(r"(?:def |KERNEL\()(elman|gru|lstm|complex_elman)(\w*)_(forward|backward)", text)
    families = set(costs.MATRICES) | ({"complex_elman"} if engine == "triton" else set())
    assert sorted(found) == sorted((family, "", way) for family in families for way in ("forward", "backward"))


@pytest.mark.usefixtures("_can_run")
@pytest.mark.parametrize(
    ("cls", "options", "family"),
    [(LSTM, {}, "lstm"), (Elman, {"activation": "relu"}, "elman"), (GRU, {"double_bias": True}, "gru")],
)
@pytest.mark.parametrize(("torchs", "taken"), [(4.0, "fused"), (6.0, "triton")])
def test_torchs_own_kernel_is_taken_where_it_is_the_cheapest(
    cls: type, options: dict[str, Any], family: str, torchs: float, taken: str,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(choice, "device_name", lambda: "Some GPU")
    us = {"torch": torchs, "triton": 5.0, "graph": 30.0}
    costs.keep("Some GPU", [(family, way, 100, cost) for way, cost in us.items()])
    name, why = choose(random_cell(cls, hidden_size=100, **options), device="cuda", sequences=50)
    costs.measured_on.cache_clear()
    assert name == taken
    assert ("torch 6" in why) == bool(choice._FAILURES) == (name == "triton"), "no trial without need"


@pytest.mark.parametrize(("family", "way"), sorted(costs.of_device(None)))
@pytest.mark.parametrize("n", [1, 50, 77, 128, 190, 240, 256])
def test_no_step_costs_less_for_more_sequences(n: int, family: str, way: str) -> None:
    few = costs.step_us(family, way, n, 50)
    assert 0 < few <= costs.step_us(family, way, n, 5000)


def scaled(cell: Any, x: Any, state: Any) -> Any:
    h, final = reference.run(cell, x, state)
    return 1.01 * h, final


def in_tensorfloat(cell: Any, x: Any, state: Any) -> Any:
    """The loop with a matrix of 10 bits of fraction, as one product of TensorFloat-32 has it."""
    W = cell.matrices()[0]
    rounded = ((W.float().view(torch.int32) + 0x1000) & -0x2000).view(torch.float32).to(W.dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cell, "matrices", lambda: (W + (rounded - W).detach(),), raising=False)
        return reference.run(cell, x, state)


def broken(*_: Any) -> Any:
    raise RuntimeError("out of resource: shared memory\nand more")


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (scaled, "other numbers than the plain loop"),
        (in_tensorfloat, "other numbers than the plain loop"),
        (broken, "fail here (RuntimeError: out of resource: shared memory)"),
    ],
)
@pytest.mark.usefixtures("_can_run")
def test_kernels_that_fail_their_trial_are_left_out(run: Any, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cell = random_cell(Elman, activation="modrelu", negative_slope=0.125)
    monkeypatch.setattr(triton_engine, "run", run)
    with torch.inference_mode():
        assert said in str(choice.failure("triton", cell))
    monkeypatch.setattr(triton_engine, "run", reference.run)
    assert said in str(choice.failure("triton", cell)), "the answer is kept"
    assert choose(cell, device="cuda")[0] == "cuda"
    assert all(p.grad is None for p in cell.parameters())


@pytest.mark.usefixtures("_can_run")
def test_a_trial_without_memory_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> Any:
        raise RuntimeError("CUDA's driver says: out of memory")

    cell = random_cell(Elman, activation="modrelu")
    monkeypatch.setattr(triton_engine, "run", full)
    assert "fail here (RuntimeError: CUDA's driver says: out of memory)" in str(choice.failure("triton", cell))
    monkeypatch.setattr(triton_engine, "run", reference.run)
    assert choice.failure("triton", cell) is None


@pytest.mark.usefixtures("_can_run")
def test_a_trial_allows_what_torch_was_told_to_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton_engine, "run", in_tensorfloat)
    try:
        torch.set_float32_matmul_precision("high")
        assert choice.failure("triton", random_cell(Elman, activation="modrelu", negative_slope=0.125)) is None
    finally:
        torch.set_float32_matmul_precision("highest")


@pytest.mark.parametrize("engine", ["graph", "triton", "cuda"])
def test_an_engine_for_gpus_is_refused_without_one(
    engine: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    with pytest.raises(ConfigError, match=f"engine={engine} cannot run Elman .*: it is for CUDA devices; use engine="):
        choose(random_cell(Elman), engine)
    assert main(["model=scornn", "task=copying", "T=5", "trainer.accelerator=cpu", f"engine={engine}"]) == 2
    said = capsys.readouterr().err.strip()
    assert f"engine={engine} cannot run Elman" in said
    assert said.count("\n") == 0


@pytest.fixture
def _toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ENGINES, "toy", Engine("toy", "tests.scan.toy_engine", rank=0, held=7.5, mapped=True))


@pytest.mark.usefixtures("_toy")
def test_an_engine_is_one_record() -> None:
    words = ("model=gru", "task=adding", "T=5", "model.hidden_size=4", "task.batch_size=3")
    toy, plain = (orthobench.build(*words, f"engine={name}") for name in ("toy", "reference"))
    assert toy.model.engines() == [("toy", "asked for")]
    assert orthobench.build(*words).model.engines() == [("toy", "it is a toy")]
    assert toy.run_id == plain.run_id
    cell, x = toy.model.cells[0], draw(2, 5, 2).float()
    assert torch.equal(recurrence(cell, x, engine="toy")[0], recurrence(cell, x, engine="reference")[0].flip(1))
    assert scans.engines(cell)[-1] == "toy"
    assert estimate(toy.model, toy.task) - estimate(plain.model, plain.task) == 4 * 0.5 * 5 * 3 * cell.values_per_step
    members = torch.func.vmap(lambda one: recurrence(cell, one, engine="toy")[0])(torch.stack([x, 2 * x]))
    torch.testing.assert_close(members[1], recurrence(cell, 2 * x, engine="toy")[0])


@pytest.mark.usefixtures("_toy")
def test_an_engine_refuses_cells_and_is_named_to_users() -> None:
    with pytest.raises(ConfigError, match=r"engine=toy cannot run Elman .*: it is for gated units"):
        choose(random_cell(Elman), "toy")
    with pytest.raises(ConfigError, match=r"allowed: auto, reference, .*toy"):
        choose(random_cell(GRU), "none")
    with pytest.raises(ConfigError, match="engine='tyo' is not known: did you mean 'toy'"):
        orthobench.build("model=gru", "task=adding", "engine=tyo")


@pytest.mark.parametrize("page", ["docs/explanation/engines.md", "conf/config.yaml"])
def test_every_engine_is_named_to_users(page: str) -> None:
    text = (REPO / page).read_text(encoding="utf-8")
    assert all(f"engine={name}" in text for name in ENGINES) or "# " + "|".join(words()) in text


def test_the_words_are_known_without_torch() -> None:
    program = "import sys; import orthobench.config.check, orthobench.scan; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize("compiles", [True, False])
def test_activations_are_torchs_where_triton_cannot_compile(
    compiles: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def forward_(*_: Any) -> None:
        tried.append(1)
        if not compiles:
            raise RuntimeError("no C compiler\nand more")

    tried: list[int] = []
    like: Any = SimpleNamespace(is_cuda=True, device=torch.device("cpu"), dtype=torch.float32)
    monkeypatch.setattr(pointwise.triton_here, "missing", lambda *_: None)
    monkeypatch.setitem(sys.modules, "orthobench.scan.triton.pointwise", SimpleNamespace(forward_=forward_))
    pointwise._compiles.cache_clear()
    assert [pointwise.in_one_kernel(like) for _ in range(3)] == [compiles] * 3
    pointwise._compiles.cache_clear()
    assert len(tried) == 1
    said = "Triton's kernels fail here (RuntimeError: no C compiler), so activations are torch's operations."
    assert capsys.readouterr().err == ("" if compiles else f"orthobench: {said}\n")


def test_tensorfloat_in_torchs_kernels_only_where_torch_was_told_so() -> None:
    cell, x = random_cell(LSTM), draw(2, 3, 3)
    try:
        for precision, allowed in (("high", True), ("highest", False)):
            torch.set_float32_matmul_precision(precision)
            fused.run(cell, x, cell.initial_state(2))
            assert torch.backends.cudnn.allow_tf32 == allowed
    finally:
        torch.set_float32_matmul_precision("highest")


@pytest.mark.parametrize(("training", "gradient"), [(True, True), (True, False), (False, True), (False, False)])
def test_torchs_kernel_is_told_of_a_gradient_in_an_evaluation(
    training: bool, gradient: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell, told, lstm = random_cell(LSTM).train(training), [], torch.lstm
    monkeypatch.setattr(torch, "lstm", lambda *given: (told.append(given[-3]), lstm(*given))[1])
    with torch.set_grad_enabled(gradient):
        torch_kernels.run(cell, draw(2, 3, 3), cell.initial_state(2))
    assert told == [training or gradient]


def test_weights_for_torchs_kernel_are_neighbours_in_memory() -> None:
    """Else cuDNN copies them at every call, and torch warns."""
    weights = [draw(8, 3).requires_grad_(), draw(8, 2, seed=1).requires_grad_(), draw(8, seed=2).requires_grad_()]
    found = torch_kernels.in_one_piece(weights)
    places = [w.storage_offset() for w in found]
    assert places == [0, 24, 40]
    assert len({w.untyped_storage().data_ptr() for w in found}) == 1
    total = torch.stack([w.square().sum() for w in found]).sum()
    torch.testing.assert_close(list(torch.autograd.grad(total, weights)), [2 * w.detach() for w in weights])


def test_what_is_not_measured_is_not_taken_for_cells_that_are_linear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "prices", lambda *_: {})
    monkeypatch.setattr(choice, "_can_run", lambda *_: True)
    for cls, taken in ((DeltaProduct, False), (MinGRU, False), (Elman, True)):
        cell = random_cell(cls, hidden_size=8, **({"heads": 2} if cls is DeltaProduct else {}))
        assert (choice.advantage("cuda", cell, "cuda", 50) is not None) == taken
