"""The gain from a second core: two threads for one sequence, and ten seeds in processes of one thread each."""

import multiprocessing
import os
import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

import torch

from orthobench.bench.scans import WIDTH, make_cell, work
from orthobench.bench.timing import Bench, Row, Work

SIZES = [(128, 50, 100), (190, 128, 50), (512, 128, 20)]
SEEDS = 10


def measure(bench: Bench) -> Iterator[Row]:
    """All rows of this file; a single row with the reason where a second core is missing or busy."""
    if reason := _why_not(bench):
        yield Row("cores", "a second core", "not measured", unit=reason)
        return
    for n, B, T in SIZES[: 1 if bench.quick else None]:
        run = work(make_cell("elman modrelu", n, bench.device), torch.randn(B, T, WIDTH), "auto")
        yield from _threads(f"elman modrelu n={n} B={B} T={T}", run, 5 if bench.quick else 15)
    yield _seeds(3 if bench.quick else 7, 10 if bench.quick else 40)


def _why_not(bench: Bench) -> str | None:
    if bench.device.type != "cpu" or not hasattr(os, "sched_getaffinity"):
        return "it is for CPUs, under Linux"
    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    if cores < 2:
        return "there is one core"
    return f"other programs are running: a load of {load:.1f} on {cores} cores" if load > cores - 0.5 else None


def _threads(case: str, run: Work, rounds: int, calls: int = 10) -> Iterator[Row]:
    """The wall time of a call with one thread and with two, which take turns every few calls."""
    seconds: dict[str, list[float]] = {"one thread": [], "two threads": []}
    for _ in range(rounds):
        for count, (_, found) in enumerate(seconds.items(), start=1):
            torch.set_num_threads(count)
            run()
            start = time.perf_counter()
            for _ in range(calls):
                run()
            found.append((time.perf_counter() - start) / calls)
    torch.set_num_threads(1)
    one = seconds["one thread"]
    for name, found in seconds.items():
        ratio = statistics.median(a / b for a, b in zip(one, found, strict=True))
        ms = 1000 * statistics.median(found)
        yield Row("threads", case, name, "one thread", ratio, ratio, cpu_ms=ms, wall_ms=ms, rounds=rounds)


def _seeds(rounds: int, steps: int) -> Row:
    """The wall time of ten seeds in two processes, as a multiple of that of one seed."""
    ratios = []
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        list(pool.map(train, [1, 1]))
        for _ in range(rounds):
            start = time.perf_counter()
            pool.submit(train, steps).result()
            middle = time.perf_counter()
            list(pool.map(train, [steps] * SEEDS))
            ratios.append((time.perf_counter() - middle) / (middle - start))
    unit = "times as long as one seed"
    return Row("seeds", "elman modrelu n=128", "ten", rounds=rounds, value=statistics.median(ratios), unit=unit)


def train(steps: int) -> None:
    """The work of one seed: `steps` forward and backward passes on one thread."""
    torch.set_num_threads(1)
    run = work(make_cell("elman modrelu", 128, torch.device("cpu")), torch.randn(50, 100, WIDTH), "auto")
    for _ in range(steps):
        run()
