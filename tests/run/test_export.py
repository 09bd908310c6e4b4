"""Exported files against the model, at lengths and batch sizes that neither was made with."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
import torch

import orthobench
from orthobench import layers
from orthobench.__main__ import main
from orthobench.cells.complex_elman import ComplexElman
from orthobench.cells.rotation import Rotation
from orthobench.errors import ConfigError
from orthobench.models.frozen import RealPair, frozen
from orthobench.parametrizations.unitary_product import UnitaryProduct
from orthobench.run.export import export
from orthobench.run.load import Finished
from orthobench.scan import exported
from tests.making import draw, random_cell, tokens
from tests.run.finished import finished

MODELS = ["scornn", "urnn_restricted", "eunn", "lstm", "ncgru", "sgornn", "deltanet", "slstm_block", "lru", "rotation"]


def run_of(root: Path, model: str) -> Finished:
    task = "copying" if model in ("scornn", "lstm") else "adding"  # tokens, and vectors
    folder, _ = finished(root, f"model={model}", f"task={task}", "T=9", "model.layers=2")
    return orthobench.load(folder, which="last")


def expected(run: Finished, B: int, T: int) -> tuple[torch.Tensor, torch.Tensor]:
    width = run.task.input_size
    x = tokens(B, T, width=width) if run.task.tokens_in else draw(B, T, width).float()
    return x, run.model(x)[0].detach()


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_onnx_computes_the_same_at_other_lengths(model: str, tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx", reason="onnx is not installed: pip install 'orthobench[export]'")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: see the extra `export`")
    pytest.importorskip("onnxscript", reason="onnxscript is not installed: see the extra `export`")
    run = run_of(tmp_path, model)
    path, difference = export(run, "onnx")
    assert difference is not None
    assert difference < 1e-4  # float32 sums in another order
    content: Any = onnx.load(path)
    assert {one.version for one in content.opset_import if not one.domain} == {18}
    assert {p.key: p.value for p in content.metadata_props}["orthobench.run_id"] == run.run_id
    session = runtime.InferenceSession(path.read_bytes())
    for size in ((1, 3), (7, 31)):
        x, y = expected(run, *size)
        torch.testing.assert_close(torch.from_numpy(session.run(None, {"x": x.numpy()})[0]), y, atol=1e-4, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_a_program_of_torch_computes_the_same_at_other_lengths(model: str, tmp_path: Path) -> None:
    run = run_of(tmp_path, model)
    path, _ = export(run, "pt2")
    files = {"run.json": ""}
    program = torch.export.load(io.BytesIO(path.read_bytes()), extra_files=files).module()
    assert json.loads(files["run.json"])["run_id"] == run.run_id
    for size in ((1, 3), (7, 31)):
        x, y = expected(run, *size)
        torch.testing.assert_close(program(x), y, atol=1e-4, rtol=1e-4)


class Backwards(Rotation):
    def coefficients(self, p: torch.Tensor, W: Any) -> tuple[torch.Tensor, torch.Tensor]:
        a, b = super().coefficients(p, W)
        return a.conj(), b


def test_a_complex_state_that_has_no_real_form_is_refused() -> None:
    with pytest.raises(ConfigError, match="Backwards has a complex state, of which no real form is known"):
        layers.frozen(layers.Recurrent(3, 8, cell=Backwards))


def test_weights_are_read_by_the_safe_loader(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, record = finished(tmp_path, "model=rnn", "task=adding", "T=5")
    assert main(["export", folder.name, f"runs_root={tmp_path}", "--last"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"{folder}/exports/last.pt: the last weights, of step 2"
    content = torch.load(folder / "exports" / "last.pt", weights_only=True)
    own = orthobench.load(folder, which="last").model.state_dict()
    assert content["run_id"] == record["run_id"]
    assert all(torch.equal(content["state_dict"][key], value) for key, value in own.items())


@pytest.mark.parametrize("features", ["both", "real"])
def test_a_complex_cell_as_pairs_of_real_numbers(features: str) -> None:
    cell = random_cell(ComplexElman, recurrent=UnitaryProduct, features=features)
    assert isinstance(cell, ComplexElman)
    x = draw(3, 6, 3)
    h, (end,) = orthobench.recurrence(cell, x, engine="reference")
    pair = RealPair(cell)
    real, (last,) = orthobench.recurrence(pair, x, engine="reference")
    torch.testing.assert_close(pair.features(real), cell.features(h))
    torch.testing.assert_close(last, torch.cat([end.real, end.imag], dim=-1))


def test_the_exported_loop_is_the_plain_one() -> None:
    cell, x = random_cell(ComplexElman, recurrent=UnitaryProduct), draw(3, 6, 3)
    pair = RealPair(cell)  # type: ignore[arg-type]
    with torch.no_grad():
        h, (end,) = exported.run(pair, x, pair.initial_state(3))
        expected_h, (expected_end,) = orthobench.recurrence(pair, x, engine="reference")
    torch.testing.assert_close(h, expected_h)
    torch.testing.assert_close(end, expected_end)


@pytest.mark.parametrize("model", ["ncgru", "urnn_full", "spectral_rnn"])
def test_a_frozen_network_computes_the_same_and_does_not_train(model: str) -> None:
    exp = orthobench.build(f"model={model}", "task=adding", "T=9", "model.hidden_size=6", "recipe=none")
    x, _ = exp.task.sample(4, seed=1)
    kept = frozen(exp.model)
    torch.testing.assert_close(kept(x)[0], exp.model(x)[0])
    assert not any(p.requires_grad for p in kept.parameters())
    assert all(p.requires_grad for p in exp.model.parameters())


def test_a_package_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, _ = finished(tmp_path, "model=rnn", "task=adding", "T=5")
    monkeypatch.setattr("orthobench.run.export.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="onnx, onnxruntime, onnxscript, not installed"):
        export(orthobench.load(folder), "onnx")
