"""A finished run's network as a file that needs no orthobench: torch.export, ONNX, or the weights alone."""

import copy
import io
import json
import logging
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from orthobench.common.packages import install
from orthobench.errors import ConfigError, OrthobenchError
from orthobench.models.base import Network
from orthobench.models.contract import faults_of_strangers
from orthobench.models.frozen import frozen
from orthobench.recording.files import write_bytes
from orthobench.run.load import Finished
from orthobench.run.one_step import OneStep, one_step, states_of, stepped
from orthobench.run.shared import share
from orthobench.tasks.example import example

OPSET = 18
SUFFIXES = {"torch": "pt", "onnx": "onnx", "pt2": "pt2"}
NEEDED = ("onnx", "onnxruntime", "onnxscript")
LENGTHS = ((2, 5), (3, 12))  # batch size and T of the two inputs that the file is checked with
Compute = Callable[[Tensor], Tensor]


class OutputOnly(nn.Module):
    """The network as a function of its input alone: it starts from its own initial state and drops the final one."""

    def __init__(self, model: Network) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> Tensor:
        """The outputs of inputs (B, T, I), tokens (B, T) or vectors (B, I)."""
        return self.model(x)[0]


def export(run: Finished, form: str, step: bool = False) -> tuple[Path, float | None]:
    """Write `<run folder>/exports/<which>.<suffix>`.

    Args:
        run: the run.
        form: `torch` for a dictionary that `torch.load` reads, `pt2` for torch.export, `onnx` for ONNX of opset 18,
            `safetensors` for a folder that `orthobench.load` reads.
        step: whether it is a function of one step, from input and states to output and states; for `onnx` alone.

    Returns:
        The file, and the largest difference of its outputs from the model's on two lengths; None for `torch`, whose
        weights are the model's own.

    Raises:
        ConfigError: a package that is needed is not installed, or `step` does not apply.
        OrthobenchError: the file computes something else than the model.
    """
    if step and form != "onnx":
        raise ConfigError(f"--step applies to --format onnx, not to {form}: write --format onnx --step.")
    if form == "safetensors":
        folder = run.folder / "exports" / f"{run.which}-safetensors"
        again = share(run, folder)
        return folder, _largest_difference(run, lambda x: again.model(x)[0])
    made, compute = {"torch": _torch, "pt2": _pt2, "onnx": _onnx_step if step else _onnx}[form](run)
    difference = None if compute is None else _largest_difference(run, compute)
    path = run.folder / "exports" / f"{run.which}{'-step' if step else ''}.{SUFFIXES[form]}"
    write_bytes(path, made)
    return path, difference


def about(run: Finished) -> dict[str, str]:
    """Origin of an exported file, and the meaning of its inputs and outputs."""
    settings = {"model": run.settings.model, "task": run.settings.task, "codes": run.codes}
    told = {name: json.dumps(value) for name, value in settings.items()}
    return {"run_id": run.run_id, "which": run.which, "step": str(run.step), **told}


def _torch(run: Finished) -> tuple[bytes, None]:
    content = {**about(run), "state_dict": run.model.state_dict()}
    file = io.BytesIO()
    torch.save(content, file)
    return file.getvalue(), None


def _pt2(run: Finished) -> tuple[bytes, Compute]:
    file, made = io.BytesIO(), _program(run)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.save(made, file, extra_files={"run.json": json.dumps(about(run))})
        file.seek(0)
        return file.getvalue(), torch.export.load(file).module()


def _onnx(run: Finished) -> tuple[bytes, Compute]:
    _need_onnx()
    content, session = _in_onnx(_program(run), ["x"], ["y"], about(run))
    return content, lambda x: torch.from_numpy(session.run(None, {"x": x.numpy()})[0])


def _onnx_step(run: Finished) -> tuple[bytes, Compute]:
    _need_onnx()
    step = one_step(run.model, run.settings.model["name"])
    states, x = states_of(step), _example(run, 4, 2)[:, 0]
    open_size = {0: torch.export.Dim("B")}
    made = _traced(step, (x, step.initial(4)), (open_size, tuple(open_size for _ in states)))
    told = about(run) | {"states": json.dumps(states)}
    inputs, outputs = ([name, *(one[key] for one in states)] for name, key in (("x", "input"), ("y", "output")))
    content, session = _in_onnx(made, inputs, outputs, told)
    return content, stepped(lambda given: session.run(None, given), told["states"], run.task.readout == "all")


def _need_onnx() -> None:
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        names = ", ".join(missing)
        raise ConfigError(f"--format onnx needs {names}, not installed here: {install('export')}.")


def _in_onnx(made: Any, inputs: list[str], outputs: list[str], properties: dict[str, str]) -> tuple[bytes, Any]:
    """A program of torch.export in ONNX, and the session of onnxruntime that runs it."""
    import onnx
    import onnxruntime

    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # it lists the operators of packages that are not there
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found: Any = torch.onnx.export(
            made, dynamo=True, opset_version=OPSET, input_names=inputs, output_names=outputs, verbose=False
        )
    model = found.model_proto
    onnx.helper.set_model_props(model, {f"orthobench.{key}": value for key, value in properties.items()})
    content = model.SerializeToString()
    return content, onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])


def _program(run: Finished) -> Any:
    return program(run.model, _example(run, 4, 7), run.task.sequential)


def program(network: Network, x: Tensor, sequential: bool) -> Any:
    """A network as torch.export sees it; the sizes of batch and time of its example x are left open.

    Args:
        network: the network.
        x: inputs of three sequences or more, of four steps or more.
        sequential: whether x has a time.

    Raises:
        ConfigError: a cell from outside the package cannot be exported.
    """
    open_sizes = {0: torch.export.Dim.DYNAMIC} | ({1: torch.export.Dim.DYNAMIC} if sequential else {})
    return _traced(OutputOnly(frozen(network)), (x,), (open_sizes,))


def _traced(module: OutputOnly | OneStep, given: tuple[Any, ...], sizes: tuple[Any, ...]) -> Any:
    unseen = redirect_stderr(io.StringIO())  # the graph, which is printed where a part of it cannot be traced
    with torch.no_grad(), warnings.catch_warnings(), faults_of_strangers(module.model, "torch.export"), unseen:
        warnings.simplefilter("ignore")
        return torch.export.export(module.eval(), given, dynamic_shapes=sizes)


def _example(run: Finished, B: int, T: int) -> Tensor:
    return example(run.task, B, T, next(run.model.parameters()).dtype)


@torch.no_grad()
def _largest_difference(run: Finished, compute: Compute) -> float:
    model, largest = copy.deepcopy(run.model).eval(), 0.0
    for size in LENGTHS:
        x = _example(run, *size)
        expected = model(x)[0]
        off = float((compute(x) - expected).abs().max())
        bound = 1e-8 if expected.dtype == torch.float64 else 1e-3
        if not off <= bound * (1 + float(expected.abs().max())):
            raise OrthobenchError(
                f"the exported file differs by {off:.3g} from the model at (B, T) = {size}; use --format torch."
            )
        largest = max(largest, off)
    return largest
