"""Microseconds of a time step on a GPU, forward and backward, for every engine and size: the most important rows first.

Each row is measured by itself; what fails is a row with its reason, and the others follow. These numbers are what
`auto` weighs, and are kept for this device (scan/gpu/costs.py).
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.func import functional_call, stack_module_state

from orthobench.bench.scans import WIDTH, make_cell, torch_network, work
from orthobench.bench.timing import Bench, Row, Work
from orthobench.scan import ENGINES
from orthobench.scan.gpu import costs
from orthobench.scan.gpu.choice import KERNELS

ELMAN, GATED, LSTM, COMPLEX = "elman modrelu", "gru after modrelu", "lstm", "urnn_full"
TORCH = {"elman": "nn.RNN", "gru": "nn.GRU", "lstm": "nn.LSTM"}
FAMILIES = {ELMAN: "elman", GATED: "gru", LSTM: "lstm", COMPLEX: "complex_elman"}
SIZES = (190, 128, 50, 256, 360, 512)
B, T = 50, 1000
SHORT = 100  # steps of what launches a kernel for every operation
LEAST_S = 0.1
LOOPS = ("graph", "reference")  # which are graphs already, or are timed as they are
UNIT = "us a step"


def measure(bench: Bench, T: int = T, sizes: tuple[int, ...] = SIZES) -> Iterator[Row]:
    """All rows of this file: the first two sizes of every family, their members, and then the other sizes."""
    for name in FAMILIES:
        yield from _family(bench, name, sizes[:2], T)
    for n in sizes[:2]:
        for members in (1, 10, 32):
            label = f"{ELMAN} n={n} B={B} T={T} members"
            yield _row(bench, label, str(members), lambda n=n, members=members: _members(bench, n, members, T), T)
    for name in FAMILIES if sizes[2:] else ():
        yield from _family(bench, name, sizes[2:], T)


def _family(bench: Bench, name: str, sizes: tuple[int, ...], T: int) -> Iterator[Row]:
    """The rows of a family at some sizes; each size is kept once it is whole, as the time may be over at the next."""
    family, path = FAMILIES[name], None
    for n in sizes:
        found: list[tuple[str, str, int, float]] = []
        for row in _steps(bench, name, n, T):
            yield row
            way = "torch" if row.variant == TORCH.get(family) else row.variant
            if way in costs.WAYS and row.value is not None:
                found.append((family, way, n, row.value))
        if found and bench.device.type == "cuda":
            path = costs.keep(torch.cuda.get_device_name(), found)
    if path is not None:
        yield Row("gpu", f"{name}, kept for engine=auto", str(path))


def _steps(bench: Bench, name: str, n: int, T: int) -> Iterator[Row]:
    case, family, short = f"{name} n={n} B={B}", FAMILIES[name], min(T, SHORT)
    for engine in KERNELS:
        yield _row(bench, case, engine, partial(_scan, bench, name, n, engine, T), T)
    yield _row(bench, case, "graph", partial(_scan, bench, name, n, "graph", short), short)
    if family in TORCH:
        yield _row(bench, case, TORCH[family], partial(_network, bench, TORCH[family], n, T), T)
    yield _row(bench, case, "reference", partial(_scan, bench, name, n, "reference", short), short)


def _row(bench: Bench, case: str, variant: str, make: Callable[[], Work], T: int) -> Row:
    """The measured row, or a row that says why there is none."""
    try:
        run = make()
        for _ in range(3):  # compiled, captured, warm
            run()
        run = captured(run) if bench.device.type == "cuda" and variant not in LOOPS else run
        return Row("gpu", case, variant, value=1e6 * call_seconds(bench, run) / T, unit=UNIT)
    except Exception as error:
        return Row("gpu", case, variant, unit=f"failed: {str(error).splitlines()[0] if str(error) else type(error)}")


def captured(run: Work) -> Work:
    """A CUDA graph of the work, as training replays it: else so short a call would be bound by Python."""
    torch.cuda.synchronize()
    graph, here = torch.cuda.CUDAGraph(), torch.cuda.stream(torch.cuda.current_stream())
    with here, torch.cuda.graph(graph):  # a failed capture does not restore the stream
        run()
    return graph.replay


def call_seconds(bench: Bench, run: Work) -> float:
    """Seconds of a call, the fastest of three measurements, by CUDA's events where there is a GPU."""
    calls, best = 1, float("inf")
    while True:
        spent = min(_timed(bench, run, calls) for _ in range(1 if calls == 1 else 3))
        best = min(best, spent / calls)
        if spent >= LEAST_S or bench.quick:
            return best
        calls = max(round(1.2 * calls * LEAST_S / max(spent, 1e-6)), calls + 1)


def _timed(bench: Bench, run: Work, calls: int) -> float:
    if bench.device.type != "cuda":
        start = time.perf_counter()
        for _ in range(calls):
            run()
        return time.perf_counter() - start
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    first.record()
    for _ in range(calls):
        run()
    last.record()
    last.synchronize()
    return first.elapsed_time(last) / 1000


def _scan(bench: Bench, name: str, n: int, engine: str, T: int) -> Work:
    cell = make_cell(name, n, bench.device)
    problem = ENGINES[engine].why_not(cell)
    if problem:
        raise RuntimeError(problem)
    return work(cell, torch.randn(B, T, WIDTH, device=bench.device), engine)


def _network(bench: Bench, kind: str, n: int, T: int) -> Work:
    x = torch.randn(B, T, WIDTH, device=bench.device)
    return torch_network("nn.RNN relu" if kind == "nn.RNN" else kind, n, x)


def _members(bench: Bench, n: int, members: int, T: int) -> Work:
    """Work of as many cells at once, under torch.func.vmap."""
    cells = [make_cell(ELMAN, n, bench.device) for _ in range(members)]
    problem = ENGINES[KERNELS[0]].why_not(cells[0])
    if problem:
        raise RuntimeError(problem)
    scanned = _Scanned(cells[0])
    parameters, _ = stack_module_state([_Scanned(cell) for cell in cells])
    x, gradient = (torch.randn(members, B, T, size, device=bench.device) for size in (WIDTH, n))

    def run() -> None:
        h = torch.func.vmap(lambda own, x: functional_call(scanned, own, x))(parameters, x)
        torch.autograd.grad(h, [p for p in parameters.values() if p.requires_grad], gradient, allow_unused=True)

    return run


class _Scanned(nn.Module):
    def __init__(self, cell: Any) -> None:
        super().__init__()
        self.cell = cell

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ENGINES[KERNELS[0]].run(self.cell, x, self.cell.initial_state(len(x)))[0]
