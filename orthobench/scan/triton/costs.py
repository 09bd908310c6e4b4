"""What a time step costs in each form of the kernels, in microseconds forward and backward; `auto` compares these.

`rows` has one sequence per program and its matrices in registers, `blocks` sixteen sequences per program, products on
tensor cores and matrices in shared memory; `graph` is the loop of small kernels as a CUDA graph. The numbers below were
not measured: those of `rows` and `blocks` are from simulations of kernels compiled for compute capability 9.0 at
1.9 GHz, but for estimates of `rows` of gated units, LSTMs and complex states; those of `graph` are from published
figures (docs/gpu.md), the LSTM's by its number of operations. `orthobench bench` measures them on a GPU and keeps them
in the user's cache, where they take the place of these. What torch's own kernel costs is known where it was measured.
"""

import csv
import os
from bisect import bisect_left
from collections.abc import Iterable
from contextvars import ContextVar
from functools import lru_cache
from math import inf
from pathlib import Path

from orthobench.terminal import complain

MULTIPROCESSORS = 132
SEQUENCES = 50  # of the numbers below, and where a caller does not know how many there are
SIZES = (50, 128, 190, 256)
FORMS = ("rows", "blocks", "graph", "torch")
Key = tuple[str, str]
UNKNOWN = (inf,) * len(SIZES)
SIMULATED: dict[Key, tuple[float, ...]] = {
    ("elman", "rows"): (0.45, 0.66, 1.48, 2.7),
    ("elman", "blocks"): (1.6, 4.2, 8.7, 18.0),
    ("elman", "graph"): (13.0, 14.0, 15.0, 16.0),
    ("gru", "rows"): (1.3, 2.6, inf, inf),
    ("gru", "blocks"): (5.0, 15.0, 40.0, 80.0),
    ("gru", "graph"): (24.0, 25.0, 27.0, 30.0),
    ("lstm", "rows"): (1.7, 6.0, inf, inf),
    ("lstm", "graph"): (34.0, 35.0, 37.0, 40.0),
    ("complex_elman", "rows"): (1.0, 2.0, inf, inf),
    ("complex_elman", "graph"): (26.0, 28.0, 30.0, 32.0),
}
only: ContextVar[str | None] = ContextVar("only", default=None)
FIELDS = ("device", "family", "form", "n", "us")


def step_us(family: str, form: str, n: int, sequences: int, device: str | None = None) -> float:
    """Microseconds of a time step forward and backward; infinite where the form has no kernel or number there.

    Args:
        family: elman (with or without scalar gates), gru, lstm or complex_elman.
        form: one of FORMS.
        n: hidden units.
        sequences: members times the batch size. Each multiprocessor computes one program after another.
        device: the name of a device whose measured numbers are to be used; null for the simulated ones.
    """
    costs = measured(device).get((family, form)) or SIMULATED.get((family, form), UNKNOWN)
    programs = {"rows": sequences, "blocks": -(-sequences // 16)}.get(form, 1)
    return _at(costs, n) * max(-(-programs // MULTIPROCESSORS), 1)


def cheaper(family: str, n: int, sequences: int, device: str | None = None) -> str:
    """The form of the kernels, rows or blocks, whose step costs less, unless `only` one is to be used."""
    return only.get() or min(FORMS[:2], key=lambda form: step_us(family, form, n, sequences, device))


@lru_cache
def measured(device: str | None) -> dict[Key, tuple[float, ...]]:
    """The numbers that were measured on a device, by family and form, for SIZES; empty where there are none."""
    path = cache(device) if device else None
    if path is None or not path.is_file():
        return {}
    found: dict[Key, dict[int, float]] = {}
    try:
        for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines()):
            found.setdefault((row["family"], row["form"]), {})[int(row["n"])] = float(row["us"])
    except (KeyError, ValueError, TypeError) as error:
        complain(f"orthobench: {path} is damaged ({error!r}) and not used: `orthobench bench` writes it again.")
        return {}
    return {
        key: tuple(own.get(n, inf) for n in SIZES)
        for key, own in found.items()
        if key[1] in FORMS and all(us > 0 for us in own.values())
    }


def keep(device: str, found: Iterable[tuple[str, str, int, float]]) -> Path:
    """Write measured numbers, (family, form, n, microseconds), into the user's cache; returns the file."""
    path = cache(device)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(FIELDS)
        writer.writerows((device, *row) for row in found)
    measured.cache_clear()
    return path


def cache(device: str) -> Path:
    """The file of a device: $XDG_CACHE_HOME/orthobench/costs/<device>.csv, or below ~/.cache."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "orthobench" / "costs" / f"{slug(device)}.csv"


def slug(device: str) -> str:
    """The name of a device as a file's name: lower case, every run of other characters than letters and digits a -."""
    return "-".join("".join(c if c.isalnum() else " " for c in device.lower()).split())


def _at(costs: tuple[float, ...], n: int) -> float:
    """Between two sizes on the line that connects them; below the first as there, beyond the last in proportion."""
    place = bisect_left(SIZES, n)
    if place == 0:
        return costs[0]
    if place == len(SIZES):
        return costs[-1] * n / SIZES[-1]
    (low, high), (less, more) = SIZES[place - 1 : place + 1], costs[place - 1 : place + 1]
    return inf if inf in (less, more) else less + (more - less) * (n - low) / (high - low)
