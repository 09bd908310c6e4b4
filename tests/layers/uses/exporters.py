"""Exporters, tracers and compilers: whatever looks on while a layer runs."""

import contextlib
import copy
import io
import tempfile
from typing import Any

import torch

from orthobench import layers
from tests.layers.uses.common import B, I, T, draw, net, same, train


def _onnx(kind: str, dynamo: bool) -> None:
    import onnxruntime

    model, x = net(kind).eval(), draw()
    with contextlib.redirect_stdout(io.StringIO()), tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/model.onnx"
        torch.onnx.export(model, (x,), path, dynamo=dynamo, input_names=["x"], output_names=["y"], verbose=False)
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        for seed in (2, 9):
            x = draw(seed=seed)
            same(torch.from_numpy(session.run(None, {"x": x.numpy()})[0]), model(x).detach())


def onnx_traced(kind: str) -> None:
    _onnx(kind, dynamo=False)


def onnx_dynamo(kind: str) -> None:
    _onnx(kind, dynamo=True)


def onnx_frozen(kind: str) -> None:
    import onnxruntime

    model = net(kind).eval()
    train(model)
    still = layers.frozen(model)
    same(still(draw()), model(draw()).detach())
    with contextlib.redirect_stdout(io.StringIO()), tempfile.TemporaryDirectory() as folder:
        path, T_open = f"{folder}/model.onnx", {1: torch.export.Dim.DYNAMIC}
        torch.onnx.export(
            still, (draw(),), path, dynamo=True, input_names=["x"], dynamic_shapes=(T_open,), verbose=False
        )
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        for steps in (T, 9):
            x = draw(B, steps, I)
            same(torch.from_numpy(session.run(None, {"x": x.numpy()})[0]), model(x).detach())


def _export(kind: str, strict: bool) -> None:
    model = net(kind).eval()
    train(model)
    program = torch.export.export(model, (draw(),), strict=strict).module()
    for seed in (2, 9):
        same(program(draw(seed=seed)), model(draw(seed=seed)), atol=1e-3, rtol=1e-3)


def export(kind: str) -> None:
    _export(kind, strict=False)


def export_strict(kind: str) -> None:
    _export(kind, strict=True)


def jit_trace(kind: str) -> None:
    model = net(kind)
    train(model)
    made = torch.jit.trace(model, draw(), check_trace=False)
    with tempfile.NamedTemporaryFile(suffix=".pt") as file:
        torch.jit.save(made, file.name)
        loaded = torch.jit.load(file.name)
    for seed in (2, 9):
        same(made(draw(seed=seed)), model(draw(seed=seed)), atol=1e-3, rtol=1e-3)
        same(loaded(draw(seed=seed)), made(draw(seed=seed)))


def make_fx(kind: str) -> None:
    from torch.fx.experimental.proxy_tensor import make_fx as traced_to_fx

    model = net(kind).eval()
    made = traced_to_fx(model)(draw())
    same(made(draw(seed=9)), model(draw(seed=9)))


def counted(kind: str) -> None:
    from torch.utils.flop_counter import FlopCounterMode

    model = net(kind)
    with FlopCounterMode(display=False) as counter:
        y = model(draw())
    same(y, model(draw()))
    assert counter.get_total_flops() > 0


def compiled(kind: str) -> None:
    torch._dynamo.reset()
    plain = net(kind)
    other = copy.deepcopy(plain)
    run: Any = torch.compile(other, backend="aot_eager")
    train(plain)
    train(run)
    same(run(draw()), plain(draw()))
    for p, q in zip(plain.parameters(), other.parameters(), strict=True):
        same(q, p)
