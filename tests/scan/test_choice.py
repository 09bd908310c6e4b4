"""Which engine `auto` takes on a GPU, and what is said where an engine cannot run."""

from typing import Any

import pytest
import torch

from orthobench import scan
from orthobench.__main__ import main
from orthobench.cells.complex_elman import ComplexElman
from orthobench.cells.elman import Elman
from orthobench.cells.gru import GRU
from orthobench.cells.lstm import LSTM
from orthobench.config.check import ROOT
from orthobench.errors import ConfigError
from orthobench.scan import choose, reference
from orthobench.scan.fused import engine as fused
from orthobench.scan.triton import engine as triton_engine
from tests.making import draw, random_cell
from tests.scan.test_engines import Halved


@pytest.mark.parametrize(
    ("cls", "options", "installed", "without"),
    [
        (Elman, {"activation": "modrelu"}, "triton", "graph"),
        (Elman, {"activation": "modrelu", "hidden_size": 300}, "graph", "graph"),
        (GRU, {"reset": "before"}, "triton", "graph"),
        (Elman, {"activation": "relu"}, "fused", "fused"),
        (LSTM, {}, "fused", "fused"),
        (ComplexElman, {}, "graph", "graph"),
        (Halved, {}, "reference", "reference"),
    ],
)
def test_automatic_choice_on_a_gpu(
    cls: type, options: dict[str, Any], installed: str, without: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = random_cell(cls, **options)
    monkeypatch.setattr(scan, "_on_gpu", lambda _: True)
    monkeypatch.setattr(triton_engine, "missing", lambda *_: None)
    monkeypatch.setattr(triton_engine, "_FAILURES", {})
    monkeypatch.setattr(triton_engine, "run", reference.run)
    assert choose(cell)[0] == installed
    monkeypatch.setattr(triton_engine, "missing", lambda *_: "the package triton is not installed")
    name, why = choose(cell)
    assert name == without
    assert ("triton is left out: " in why) == (without == "graph")


def scaled(cell: Any, x: Any, state: Any) -> Any:
    h, final = reference.run(cell, x, state)
    return 1.01 * h, final


def broken(*_: Any) -> Any:
    raise RuntimeError("out of resource: shared memory\nand more")


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (scaled, "other numbers than the plain loop"),
        (broken, "fail here (RuntimeError: out of resource: shared memory)"),
    ],
)
def test_kernels_that_fail_their_trial_are_left_out(run: Any, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cell = random_cell(Elman, activation="modrelu", negative_slope=0.125)
    monkeypatch.setattr(scan, "_on_gpu", lambda _: True)
    monkeypatch.setattr(triton_engine, "missing", lambda *_: None)
    monkeypatch.setattr(triton_engine, "_FAILURES", {})
    monkeypatch.setattr(triton_engine, "run", run)
    with torch.inference_mode():
        name, why = choose(cell)
    assert (name, said in why) == ("graph", True)
    monkeypatch.setattr(triton_engine, "run", reference.run)
    assert choose(cell)[0] == "graph"
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


def test_every_engine_is_a_value_of_the_key() -> None:
    assert ROOT["engine"] == scan.Engine
    assert set(scan.ENGINES) | {"auto"} == set(scan.Engine.__args__)


def test_tensorfloat_in_torchs_kernels_only_where_torch_was_told_so() -> None:
    cell, x = random_cell(LSTM), draw(2, 3, 3)
    try:
        for precision, allowed in (("high", True), ("highest", False)):
            torch.set_float32_matmul_precision(precision)
            fused.run(cell, x, cell.initial_state(2))
            assert torch.backends.cudnn.allow_tf32 == allowed
    finally:
        torch.set_float32_matmul_precision("highest")
