"""ONNX of one step against the model over the whole sequence, in onnxruntime."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import orthobench
from orthobench.errors import ConfigError
from orthobench.run.export import export
from orthobench.run.one_step import one_step, states_of
from tests.conftest import Refused
from tests.run.finished import finished

onnx = pytest.importorskip("onnx", reason="onnx is not installed: pip install 'orthobench[export]'")
runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: see the extra `export`")
pytest.importorskip("onnxscript", reason="onnxscript is not installed: see the extra `export`")

MODELS = [
    ("scornn", "task=adding"), ("lstm", "task=copying"),
    *(pytest.param(model, words, marks=pytest.mark.slow) for model, words in [
        ("urnn_restricted", "task=adding model.trainable_h0=true"), ("lru", "task=adding"), ("deltanet", "task=adding"),
        ("slstm_block", "task=adding"), ("rotation", "task=adding"), ("gru", "task=adding model.input_convolution=3"),
        ("pdssm", "task=copying"), ("gru", "task=adding trainer.precision=64-true"),
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("model", "words"), MODELS)
def test_steps_give_what_the_whole_sequence_gives(model: str, words: str, tmp_path: Path) -> None:
    folder, _ = finished(tmp_path, f"model={model}", *words.split(), "T=9", "model.layers=2")
    run = orthobench.load(folder, which="last")
    path, _ = export(run, "onnx", step=True)
    assert path.name == "last-step.onnx"
    content: Any = onnx.load(path)
    states = json.loads({p.key: p.value for p in content.metadata_props}["orthobench.states"])
    session = runtime.InferenceSession(path.read_bytes())
    assert [i.name for i in session.get_inputs()] == ["x", *(s["input"] for s in states)]
    assert [o.name for o in session.get_outputs()] == ["y", *(s["output"] for s in states)]
    x = run.task.sample(3, seed=2)[0]
    x = x if run.task.tokens_in else x.to(next(run.model.parameters()).dtype)
    expected = run.model(x)[0].detach().numpy()
    now = {s["input"]: np.full((3, *s["shape"]), 0, s["dtype"]) + np.asarray(s["initial"], s["dtype"]) for s in states}
    outputs = []
    for x_t in x.unbind(1):
        y, *after = session.run(None, {"x": x_t.numpy(), **now})
        now = {s["input"]: value for s, value in zip(states, after, strict=True)}
        outputs.append(y)
    found = np.stack(outputs, axis=1) if run.task.readout == "all" else outputs[-1]
    close = 1e-10 if expected.dtype == np.float64 else 1e-4
    np.testing.assert_allclose(found, expected, atol=close, rtol=close)


def test_the_first_states_are_those_of_the_model() -> None:
    exp = orthobench.build("model=scornn", "task=adding", "T=9", "model.hidden_size=6", "model.trainable_h0=true")
    (state,) = states_of(one_step(exp.model, "scornn"))
    assert exp.model.cells[0].h0 is not None
    torch.testing.assert_close(torch.tensor(state["initial"]), exp.model.cells[0].h0[0].detach())


@pytest.mark.parametrize("form", ["torch", "pt2", "safetensors"])
def test_a_step_is_of_onnx_alone(form: str, tmp_path: Path, refused: Refused) -> None:
    folder, _ = finished(tmp_path, "model=rnn", "task=adding", "T=5")
    told = f"--step applies to --format onnx, not to {form}: write"
    refused(["export", str(folder), "--format", form, "--step"], told)
    assert not (folder / "exports").exists()


def test_a_network_without_states_has_no_step() -> None:
    exp = orthobench.build("model=gru", "task=adding", "T=9", "model.hidden_size=6")
    exp.model.sequential = False
    with pytest.raises(ConfigError, match="keeps no state from step to step"):
        one_step(exp.model, "gru")
