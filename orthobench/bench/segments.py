"""Training of a long sequence in segments (`checkpoint=`): its time beside that of the whole at once, and its memory.

Memory is the peak of a process of its own, above what it has before its first step, in times of all hidden states.
"""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import torch

from orthobench.bench.timing import Bench, Row, Work
from orthobench.recording.record import peak_bytes

WAYS = (None, "states", "auto")
LONG = ("scornn", 190, 50, 10_000)
QUICK = ("scornn", 64, 8, 400)


def measure(bench: Bench) -> Iterator[Row]:
    """All rows of this file."""
    model, n, B, T = QUICK if bench.quick else LONG
    case = f"{model} n={n} B={B} T={T}"
    steps = {_name(way): step(model, n, B, T if bench.quick else T // 5, way) for way in WAYS}
    yield from bench.compare("segments", case if bench.quick else f"{model} n={n} B={B} T={T // 5}", steps)
    for way in WAYS if bench.device.type == "cpu" else ():
        words = [sys.executable, "-m", __name__, model, str(n), str(B), str(T), str(way)]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        value = float(done.stdout) / (4 * n * B * T)
        yield Row("segments", case, f"memory, {_name(way)}", value=value, unit="times all hidden states")


def step(model: str, n: int, B: int, T: int, way: str | None) -> Work:
    """A training step without the optimizer on the copying task, which asks for ten outputs at the end."""
    from orthobench.models.build import build_model, build_task
    from orthobench.study.catalogue import Catalogue

    words = [f"model={model}", "task=copying", f"T={T}", "recipe=none", f"task.batch_size={B}"]
    settings = Catalogue().settings([*words, f"model.hidden_size={n}"])
    task = build_task(settings)
    network: Any = build_model(settings, task)
    network.checkpoint = way
    batch = task.batch("train", 0, 0)

    def work() -> None:
        network.zero_grad(set_to_none=True)
        x, target, *mask = batch
        task.loss(network(x)[0], target, *mask).backward()

    return work


def _name(way: str | None) -> str:
    return "the whole at once" if way is None else f"checkpoint={way}"


def _peak(model: str, n: str, B: str, T: str, way: str) -> int:
    """Bytes by which a step raises the peak of this process; a step of a short sequence before it is not counted."""
    torch.set_num_threads(1)
    asked = None if way == "None" else way
    step(model, int(n), int(B), 20, asked)()
    run = step(model, int(n), int(B), int(T), asked)
    before = peak_bytes(torch.device("cpu")) or 0
    run()
    return (peak_bytes(torch.device("cpu")) or 0) - before


if __name__ == "__main__":
    print(_peak(*sys.argv[1:]))
