"""Which engine `auto` takes on a GPU, and what is said where an engine cannot run."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import orthobench
from orthobench.__main__ import main
from orthobench.bench import scans
from orthobench.cells.complex_elman import ComplexElman
from orthobench.cells.elman import Elman
from orthobench.cells.gru import GRU
from orthobench.cells.lstm import LSTM
from orthobench.errors import ConfigError
from orthobench.run.memory import estimate
from orthobench.scan import ENGINES, Engine, choose, recurrence, reference, words
from orthobench.scan.fused import engine as fused
from orthobench.scan.triton import costs
from orthobench.scan.triton import engine as triton_engine
from tests.conftest import REPO
from tests.making import draw, random_cell
from tests.scan.test_engines import Halved


@pytest.mark.parametrize(
    ("cls", "options", "installed", "without"),
    [
        (Elman, {"activation": "modrelu"}, "triton", "graph"),
        (Elman, {"activation": "modrelu", "hidden_size": 300}, "graph", "graph"),
        (GRU, {"reset": "before"}, "triton", "graph"),
        (GRU, {"reset": "before", "hidden_size": 128}, "triton", "graph"),
        (GRU, {"reset": "before", "hidden_size": 190}, "graph", "graph"),
        (Elman, {"activation": "relu"}, "fused", "fused"),
        (LSTM, {}, "fused", "fused"),
        (LSTM, {"peephole": True}, "graph", "graph"),
        (ComplexElman, {}, "triton", "graph"),
        (ComplexElman, {"hidden_size": 190}, "graph", "graph"),
        (Halved, {}, "reference", "reference"),
    ],
)
def test_automatic_choice_on_a_gpu(
    cls: type, options: dict[str, Any], installed: str, without: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = random_cell(cls, **options)
    monkeypatch.setattr(triton_engine, "missing", lambda *_: None)
    monkeypatch.setattr(triton_engine, "_FAILURES", {})
    monkeypatch.setattr(triton_engine, "run", reference.run)
    assert choose(cell, device="cuda")[0] == installed
    monkeypatch.setattr(triton_engine, "missing", lambda *_: "the package triton is not installed")
    name, why = choose(cell, device="cuda")
    assert name == without
    assert ("triton is left out: " in why) == (without == "graph")


@pytest.fixture
def _can_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton_engine, "missing", lambda *_: None)
    monkeypatch.setattr(triton_engine, "_FAILURES", {})
    monkeypatch.setattr(triton_engine, "run", reference.run)


class Doubled(LSTM):
    """Another projection, which torch's kernel would leave out."""

    def project(self, x: torch.Tensor) -> torch.Tensor:
        return 2 * super().project(x)


@pytest.mark.usefixtures("_can_run")
@pytest.mark.parametrize(
    ("cls", "n", "sequences", "said"),
    [
        (
            Elman,
            128,
            50,
            "a sequence per program, matrices in registers: about 0.66 us a step, simulated (blocks 4.2, ",
        ),
        (Elman, 128, 500, "a sequence per program, matrices in registers: about 2.64 us"),
        (Elman, 128, 3200, "16 sequences per program: about 8.4 us a step, simulated (rows 16.5, graph 14)"),
        (Doubled, 128, 50, "matrices in registers: about 6 us a step, simulated (graph 35)"),
        (GRU, 190, 50, "its kernels would need about 40 us a step for n=190, and this 27, simulated"),
    ],
)
def test_the_choice_weighs_what_a_step_costs_and_says_so(cls: type, n: int, sequences: int, said: str) -> None:
    cell = random_cell(cls, hidden_size=n, **({} if cls is Doubled else {"activation": "modrelu"}))
    assert said in choose(cell, device="cuda", sequences=sequences)[1]


@pytest.mark.usefixtures("_can_run")
def test_numbers_measured_on_the_device_take_the_place_of_simulated_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(triton_engine.torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(triton_engine.torch.cuda, "get_device_name", lambda *_: "Some GPU (80 GB)")
    cell = random_cell(Elman, hidden_size=128, activation="modrelu")
    path = costs.keep("Some GPU (80 GB)", [("elman", "rows", n, 30.0) for n in costs.SIZES])
    assert path == tmp_path / "orthobench" / "costs" / "some-gpu-80-gb.csv"
    assert (
        "16 sequences per program: about 4.2 us a step, measured here (rows 30, graph 14)"
        in choose(cell, device="cuda", sequences=50)[1]
    )
    costs.keep("Some GPU (80 GB)", [("elman", form, n, 30.0) for form in ("rows", "blocks") for n in costs.SIZES])
    assert choose(cell, device="cuda")[0] == "graph"
    path.write_text("device,family,form,n,us\nSome GPU,elman,rows,128,fast\n")
    costs.measured.cache_clear()
    assert "simulated" in choose(cell, device="cuda")[1]
    assert "is damaged" in capsys.readouterr().err
    costs.measured.cache_clear()


@pytest.mark.usefixtures("_can_run")
@pytest.mark.parametrize(
    ("cls", "options", "family"),
    [(LSTM, {}, "lstm"), (Elman, {"activation": "relu"}, "elman"), (GRU, {"double_bias": True}, "gru")],
)
@pytest.mark.parametrize(
    ("torchs", "rows", "taken"), [(None, 1.0, "fused"), (4.0, 5.0, "fused"), (6.0, 5.0, "triton"), (6.0, None, "fused")]
)
def test_torchs_own_kernel_is_left_out_where_it_was_measured_to_be_slower(
    cls: type, options: dict[str, Any], family: str, torchs: float | None, rows: float | None, taken: str,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(triton_engine.torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(triton_engine.torch.cuda, "get_device_name", lambda *_: "Some GPU")
    us = {"torch": torchs, "rows": rows, "blocks": 20.0, "graph": 30.0}
    costs.keep("Some GPU", [(family, form, n, cost) for form, cost in us.items() if cost for n in costs.SIZES])
    name, why = choose(random_cell(cls, hidden_size=100, **options), device="cuda", sequences=50)
    costs.measured.cache_clear()
    assert name == taken
    assert ("torch 6" in why) == bool(triton_engine._FAILURES) == (name == "triton"), "no trial without need"


@pytest.mark.parametrize("n", [1, 50, 77, 128, 190, 240, 256])
def test_no_step_costs_less_in_more_units_or_sequences(n: int) -> None:
    for family, form in costs.SIMULATED:
        few = costs.step_us(family, form, n, 50)
        assert 0 < few <= costs.step_us(family, form, n + 16, 50)
        assert few <= costs.step_us(family, form, n, 5000)


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
def test_kernels_that_fail_their_trial_are_left_out(run: Any, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cell = random_cell(Elman, activation="modrelu", negative_slope=0.125)
    monkeypatch.setattr(triton_engine, "missing", lambda *_: None)
    monkeypatch.setattr(triton_engine, "_FAILURES", {})
    monkeypatch.setattr(triton_engine, "run", run)
    with torch.inference_mode():
        name, why = choose(cell, device="cuda")
    assert (name, said in why) == ("graph", True)
    monkeypatch.setattr(triton_engine, "run", reference.run)
    assert choose(cell, device="cuda")[0] == "graph"
    assert all(p.grad is None for p in cell.parameters())


@pytest.mark.parametrize("engine", ["graph", "triton"])
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


@pytest.mark.parametrize("page", ["README.md", "conf/config.yaml"])
def test_every_engine_is_named_to_users(page: str) -> None:
    text = (REPO / page).read_text(encoding="utf-8")
    assert all(f"engine={name}" in text for name in ENGINES) or "# " + "|".join(words()) in text


def test_the_words_are_known_without_torch() -> None:
    program = "import sys; import orthobench.config.check, orthobench.scan; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_tensorfloat_in_torchs_kernels_only_where_torch_was_told_so() -> None:
    cell, x = random_cell(LSTM), draw(2, 3, 3)
    try:
        for precision, allowed in (("high", True), ("highest", False)):
            torch.set_float32_matmul_precision(precision)
            fused.run(cell, x, cell.initial_state(2))
            assert torch.backends.cudnn.allow_tf32 == allowed
    finally:
        torch.set_float32_matmul_precision("highest")
