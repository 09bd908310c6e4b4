"""Later cells beside the plain loop, which is `engine=reference`, and beside torchrecurrent's layers.

One call is forward and backward over a sequence, recurrent matrices included, with a gradient on every output. Ours
runs by the engine that `auto` takes. The cells of the five papers are in scans.py, engine by engine.
"""

from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module, util
from typing import Any

import torch
from torch import Tensor

from orthobench.bench.scans import WIDTH, both_ways
from orthobench.bench.timing import Bench, Row, Work
from orthobench.cells.base import Cell
from orthobench.layers import Layer
from orthobench.scan import choose, recurrence

MODELS = (
    *("lstm_chrono", "gru_chrono", "rnn_chain", "nnrnn", "lem", "cornn", "unicornn", "lipschitz_rnn"),
    *("antisymmetric_rnn", "lru", "rotation", "mingru", "minlstm", "slstm", "mlstm", "deltanet", "deltaproduct"),
    *("gated_deltanet", "kda", "gla", "mamba2", "mamba3", "m2rnn", "pdssm", "attention", "rwkv7"),
)
LIBRARY = "torchrecurrent"
BESIDE = ("deltanet", "deltaproduct", "mlstm", "mingru", "eunn", "urnn_restricted")
LAYERS = {"lem": "LEM", "cornn": "coRNN", "unicornn": "UnICORNN", "antisymmetric_rnn": "AntisymmetricRNN"}


def measure(bench: Bench) -> Iterator[Row]:
    """All rows of this file."""
    sizes = ((128, 16, 20),) if bench.quick else ((128, 50, 200), (128, 32, 1000))
    for model in MODELS:
        yield from compare(bench, model, *sizes[0])
    for n, B, T in sizes:
        yield from beside_scornn(bench, n, B, T)


def beside_scornn(bench: Bench, n: int, B: int, T: int) -> list[Row]:
    """Time cells of some families against scoRNN's of as many units, by the engine that `auto` takes."""
    x = torch.randn(B, T, WIDTH, device=bench.device)
    cells = {model: make_cell(model, n, T).to(bench.device) for model in ("scornn", *BESIDE)}
    works = {model: both_ways(cell, lambda cell=cell: recurrence(cell, x)[0]) for model, cell in cells.items()}
    return bench.compare("beside scornn", f"n={n} B={B} T={T}", works)


def compare(bench: Bench, model: str, n: int, B: int, T: int) -> list[Row]:
    """Compare one model, with a row that says so where torchrecurrent has the cell and is not installed."""
    x, case = torch.randn(B, T, WIDTH, device=bench.device), f"{model} n={n} B={B} T={T}"
    cell = make_cell(model, n, T).to(bench.device)
    found = bench.compare("cells", case, works(model, cell, x))
    found[1] = replace(found[1], unit=f"by {choose(cell)[0]}")
    if model in LAYERS and not installed():
        found.append(Row("cells", case, library_name(model), unit=f"not measured: {LIBRARY} is not installed"))
    return found


def works(model: str, cell: Cell, x: Tensor) -> dict[str, Work]:
    """Work that takes turns: the plain loop first, then ours, and torchrecurrent's layer where there is one."""
    found = {
        "reference": both_ways(cell, lambda: recurrence(cell, x, engine="reference")[0]),
        "auto": both_ways(cell, lambda: recurrence(cell, x)[0]),
    }
    if model in LAYERS and installed():
        layer = getattr(import_module(LIBRARY), LAYERS[model])(x.shape[-1], cell.hidden_size, batch_first=True)
        layer.to(x.device)
        found[library_name(model)] = both_ways(layer, lambda: layer(x)[0])
    return found


def make_cell(model: str, n: int, T: int, width: int = WIDTH) -> Cell:
    """The cell of conf/model/<model>.yaml with n units, made for sequences of T steps."""
    layer: Any = type(model, (Layer,), {}, model=model)
    horizon = {"T_max": max(T, 3)} if model.endswith("chrono") else {}
    return layer(width, n, **horizon).cells[0]


def installed() -> bool:
    """True where torchrecurrent can be imported."""
    return util.find_spec(LIBRARY) is not None


def library_name(model: str) -> str:
    """The name of torchrecurrent's layer for a model of `LAYERS`."""
    return f"{LIBRARY}.{LAYERS[model]}"
