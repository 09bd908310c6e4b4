"""Engines and cells against the plain loop, torch's own networks and the matrix products alone; growth; memory.

One call is forward and backward over a sequence of inputs of width 16, with a gradient on every hidden state.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from orthobench.bench.timing import Bench, Row, Work
from orthobench.cells.base import Cell
from orthobench.cells.complex_elman import ComplexElman
from orthobench.cells.elman import Elman
from orthobench.cells.gru import GRU
from orthobench.cells.lstm import LSTM
from orthobench.cells.scalar_gated import ScalarGated
from orthobench.parametrizations.base import Parametrization
from orthobench.parametrizations.free import Free
from orthobench.parametrizations.givens import Givens
from orthobench.parametrizations.plane_rotations import PlaneRotations
from orthobench.parametrizations.unitary_product import UnitaryProduct
from orthobench.scan import ENGINES, choose, recurrence
from orthobench.scan.native import diagonal

WIDTH = 16
SIZES = [
    (50, 16, 200),
    (128, 50, 200),
    (128, 128, 200),
    (190, 50, 200),
    (190, 128, 200),
    (512, 50, 100),
    (512, 128, 50),
]
QUICK_SIZES = [(50, 16, 100), (128, 50, 50), (190, 128, 20), (512, 50, 20)]
CELLS: dict[str, tuple[type, dict[str, Any]]] = {
    "elman modrelu": (Elman, {"activation": "modrelu"}),
    "elman relu": (Elman, {"activation": "relu"}),
    "elman leaky_relu": (Elman, {"activation": "leaky_relu"}),
    "elman abs": (Elman, {"activation": "abs"}),
    "elman tanh": (Elman, {"activation": "tanh"}),
    "scalar_gated relu": (ScalarGated, {}),
    "gru after tanh": (GRU, {"reset": "after"}),
    "gru after modrelu": (GRU, {"reset": "after", "activation": "modrelu"}),
    "gru before modrelu": (GRU, {"reset": "before", "activation": "modrelu"}),
    "lstm": (LSTM, {}),
    "urnn_full": (ComplexElman, {}),
    "eunn capacity=2": (ComplexElman, {"modrelu": "eunn"}),
    "urnn_restricted": (ComplexElman, {}),
    "vprnn": (Elman, {"activation": "relu"}),
}
FACTORED: dict[str, tuple[type, dict[str, Any]]] = {
    "eunn capacity=2": (Givens, {"capacity": 2, "complex": True}),
    "urnn_restricted": (UnitaryProduct, {}),
    "vprnn": (PlaneRotations, {}),
}
LARGE_FACTORED = [("urnn_restricted", 512, 100), ("urnn_restricted", 2170, 20), ("vprnn", 512, 100)]
LONG = ("elman modrelu", "gru after modrelu", "lstm")
KINDS: dict[str, tuple[type, int, dict[str, Any]]] = {
    "nn.RNN relu": (nn.RNN, 1, {"nonlinearity": "relu"}),
    "nn.GRU": (nn.GRU, 3, {}),
    "nn.LSTM": (nn.LSTM, 4, {}),
}


def measure(bench: Bench) -> Iterator[Row]:
    """All rows of this file."""
    for n, B, T in QUICK_SIZES if bench.quick else SIZES:
        yield from _engines(bench, "elman modrelu", n, B, T, tuple(KINDS))
    for name in list(CELLS)[1:]:
        beside = ("nn.LSTM",) if name == "lstm" else ()
        yield from _engines(bench, name, 128, 50, 100 if bench.quick else 200, beside)
    for name, n, T in [] if bench.quick else LARGE_FACTORED:
        yield from _engines(bench, name, n, 50, T)
    for dtype in (torch.float32, torch.complex64):
        yield from _diagonal(bench, 128, 50, 100 if bench.quick else 1000, dtype)
    for name in LONG:
        yield from long_sequences(bench, name, 128, 20)
    yield from _growth(bench)
    for name in CELLS:
        yield from _memory(bench, name)


def make_cell(name: str, n: int, device: torch.device, dense: bool = False) -> Cell:
    """A cell for timing the scan alone: its recurrent matrices are free and start orthogonal, or are factored."""
    cls, options = CELLS[name]
    rng = np.random.default_rng(0)

    recurrent, settings = FACTORED.get("" if dense else name, (Free, {"recurrent_init": "orthogonal"}))

    def make(**_: Any) -> Parametrization:
        return recurrent(n=n, rng=rng, **settings)

    return cls(input_size=WIDTH, hidden_size=n, rng=rng, make_recurrent=make, **options).to(device)


def work(cell: Cell, x: Tensor, engine: str) -> Work:
    """Forward and backward through one engine."""
    return both_ways(cell, lambda: recurrence(cell, x, engine=engine)[0])


def both_ways(module: nn.Module, forward: Callable[[], Tensor]) -> Work:
    """Forward and backward, with a gradient on every output of `forward`, which computes something with the module."""
    gradient = torch.randn_like(forward())

    def run() -> None:
        module.zero_grad(set_to_none=True)
        forward().backward(gradient)

    return run


def engines(cell: Cell) -> list[str]:
    """The engines that can run a cell, `reference` first."""
    return [name for name, engine in ENGINES.items() if engine.why_not(cell) is None]


def _engines(bench: Bench, name: str, n: int, B: int, T: int, beside: tuple[str, ...] = ()) -> list[Row]:
    cell, x = make_cell(name, n, bench.device), torch.randn(B, T, WIDTH, device=bench.device)
    works = {engine: work(cell, x, engine) for engine in engines(cell)}
    if name == "vprnn" and "native" in works:
        works["native, dense"] = work(make_cell(name, n, bench.device, dense=True), x, "native")
    if name not in FACTORED:  # a complex product is four real ones
        works["matrix products"] = _floor(n, B, T, 4 if cell.complex_state else len(cell.gates), bench.device)
    budget = n * (n - 1) // 2 + n * WIDTH + n  # an orthogonal cell has the free numbers of a skew matrix
    for kind in beside:
        works[kind] = torch_network(kind, n, x)
        if name == "elman modrelu":
            gates = KINDS[kind][1]
            works[f"{kind}, equal parameters"] = torch_network(kind, _equal_size(gates, budget), x)
    return bench.compare("scan", f"{name} n={n} B={B} T={T}", works)


def _diagonal(bench: Bench, n: int, B: int, T: int, dtype: torch.dtype) -> list[Row]:
    """A diagonal linear recurrence in C beside a whole Elman scan in C."""
    cell, x = make_cell("elman modrelu", n, bench.device), torch.randn(B, T, WIDTH, device=bench.device)
    device: Any = {"device": bench.device, "dtype": dtype}
    a, b, h0 = (torch.rand(*shape, **device).requires_grad_() for shape in ((n,), (T, B, n), (B, n)))
    gradient = torch.randn(T, B, n, **device)

    def plain() -> None:
        h, states = h0, []
        for b_t in b.unbind(0):
            h = a * h + b_t
            states.append(h)
        torch.autograd.grad(torch.stack(states), (a, b, h0), gradient)

    works: dict[str, Work] = {"plain loop": plain}
    if diagonal.why_not(b) is None:
        works["native"] = lambda: torch.autograd.grad(diagonal.diagonal_scan(a, b, h0), (a, b, h0), gradient)
        works["elman modrelu, native"] = work(cell, x, "native")
    kind = "complex diagonal" if dtype.is_complex else "diagonal"
    return bench.compare("scan", f"{kind} n={n} B={B} T={T}", works)


def long_sequences(bench: Bench, name: str, n: int, B: int) -> list[Row]:
    """Sequences of several lengths, by the engine that `auto` takes."""
    cell = make_cell(name, n, bench.device)
    lengths = (500, 2000) if bench.quick else (500, 2000, 8000)
    works = {f"T={T}": work(cell, torch.randn(B, T, WIDTH, device=bench.device), "auto") for T in lengths}
    return bench.compare("long", f"{name} n={n} B={B}", works)


def _floor(n: int, B: int, T: int, gates: int, device: torch.device) -> Work:
    """The products alone, of the shapes of the steps: T forward, T backward, the gradients of W and U, and U x."""
    h, W, X, U = (torch.randn(*shape, device=device) for shape in ((B, n), (n, n), (T * B, WIDTH), (WIDTH, n)))
    H, out = torch.randn(T * B, n, device=device), torch.empty(B, n, device=device)

    def run() -> None:
        for _ in range(2 * T * gates):
            torch.mm(h, W, out=out)
        for _ in range(gates):
            torch.mm(H.T, H)
            torch.mm(X.T, H)
            torch.mm(X, U)

    return run


def _equal_size(gates: int, budget: int) -> int:
    """The hidden size of torch's module, two biases per gate, nearest to a budget of parameters."""
    half = (WIDTH + 2) / 2
    return max(round((half**2 + budget / gates) ** 0.5 - half), 1)


def torch_network(kind: str, n: int, x: Tensor) -> Work:
    """A network of torch's own, by its name in `KINDS`, forward and backward."""
    cls, _, options = KINDS[kind]
    network = cls(WIDTH, n, batch_first=True, **options).to(x.device)
    return both_ways(network, lambda: network(x)[0])


def _growth(bench: Bench) -> Iterator[Row]:
    """Growth of the cost of the engine that `auto` takes, with each size alone."""
    start = {"n": 64, "B": 16, "T": 50}
    steps = (1, 2, 4) if bench.quick else (1, 2, 4, 8)
    for key in start:
        works = {}
        for factor in steps:
            size = {**start, key: start[key] * factor}
            cell = make_cell("elman modrelu", size["n"], bench.device)
            x = torch.randn(size["B"], size["T"], WIDTH, device=bench.device)
            works[f"{key}={size[key]}"] = work(cell, x, "auto")
        fixed = " ".join(f"{other}={start[other]}" for other in start if other != key)
        engine = choose(make_cell("elman modrelu", 64, bench.device))[0]
        yield from bench.compare("growth", f"elman modrelu, {engine}, {fixed}", works)


def _memory(bench: Bench, name: str) -> Iterator[Row]:
    """Memory between forward and backward pass, hidden states included, in floats per hidden value (of B T n)."""
    n, B, T = 128, 8, 100
    cell, x = make_cell(name, n, bench.device), torch.randn(B, T, WIDTH, device=bench.device)
    unit, loop = 4 * n * B * T, 0.0
    for engine in engines(cell):
        kept = saved_bytes(cell, x, engine) / unit
        loop = loop or kept
        yield Row(
            "memory", name, engine, "reference", ratio=loop / kept, value=kept, unit="floats kept per hidden value"
        )


def saved_bytes(cell: Cell, x: Tensor, engine: str) -> int:
    """Bytes of the distinct storages that autograd saves and of the hidden states, parameters and inputs left out."""
    kept: dict[int, Tensor] = {}

    def pack(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        output, _ = recurrence(cell, x, engine=engine)
    pack(output)
    outside = {t.untyped_storage().data_ptr() for t in (x, *cell.parameters())}
    return sum(t.untyped_storage().nbytes() for pointer, t in kept.items() if pointer not in outside)
