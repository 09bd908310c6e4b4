"""Microseconds of a time step on a GPU, forward and backward, of every way to run a cell; `auto` compares these.

`h200.csv` beside this file was measured by `orthobench bench` on an NVIDIA H200 with batches of 50; of `cuda` its two
kernels alone. Measurements on the device itself are kept in the user's cache and take its place. On other devices the
numbers are called scaled: the order of the ways is taken to be the same there.
"""

import csv
import os
from bisect import bisect_left
from collections.abc import Iterable
from functools import lru_cache
from math import ceil, inf
from pathlib import Path

from orthobench.common.terminal import complain

WAYS = ("cuda", "triton", "graph", "torch")
SEQUENCES = 50  # of every measurement
MULTIPROCESSORS = 132
MATRICES = {"elman": 1, "gru": 3, "lstm": 4}  # one less in a GRU without a reset
FIELDS = ("device", "family", "way", "n", "us")
SHIPPED = Path(__file__).with_name("h200.csv")
SHIPPED_DEVICE = "NVIDIA H200"
Costs = dict[tuple[str, str], list[tuple[int, float]]]


def step_us(family: str, way: str, n: int, sequences: int, device: str | None = None) -> float:
    """Microseconds of a time step forward and backward; infinite where nothing is known of a way.

    Args:
        family: one of `choice.FAMILIES`; elman is with or without scalar gates.
        way: one of WAYS.
        n: see `choice.size`.
        sequences: members times the batch size.
        device: the name of the device; None for that of the shipped numbers.
    """
    known = of_device(device).get((family, way))
    return inf if known is None else _at(known, n) * growth(family, way, n, sequences)


def growth(family: str, way: str, n: int, sequences: int) -> float:
    """Time for so many sequences in the time for 50, by what the multiprocessors compute one after another."""
    if way == "triton" and family in ("diagonal", "matrix"):  # many programs for each sequence
        return max(1.0, sequences / SEQUENCES)
    if way == "triton":
        return ceil(sequences / MULTIPROCESSORS)
    if way != "cuda":
        return 1.0
    from orthobench.scan.cuda.layout import best

    many, few = (best(n, MATRICES[family], count) for count in (sequences, SEQUENCES))
    return inf if many is None or few is None else many.cycles(sequences) / few.cycles(SEQUENCES)


def source(device: str | None, family: str) -> str:
    """The origin of a device's numbers for a family, in words."""
    if any(known == family for known, _ in measured_on(device)):
        return "measured here"
    return (
        f"measured on an {SHIPPED_DEVICE}" if device in (None, SHIPPED_DEVICE) else f"scaled from an {SHIPPED_DEVICE}"
    )


def of_device(device: str | None) -> Costs:
    """The numbers for a device: (n, microseconds) by family and way, in the order of n.

    Those of a family that was measured on the device are all of there, the others are the shipped ones.
    """
    own = measured_on(device)
    families = {family for family, _ in own}
    return {key: known for key, known in _shipped().items() if key[0] not in families} | own


@lru_cache
def measured_on(device: str | None) -> Costs:
    """The numbers that were measured on a device, none for None."""
    path = cache(device) if device else None
    if path is not None and path.is_file():
        try:
            return _read(path)
        except (KeyError, ValueError, TypeError) as error:
            complain(f"orthobench: {path} is damaged ({error!r}) and not used: `orthobench bench` writes it again.")
    return {}


@lru_cache
def _shipped() -> Costs:
    return _read(SHIPPED)


def _read(path: Path) -> Costs:
    found: Costs = {}
    for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines()):
        us = float(row["us"])
        if not us > 0 or row["way"] not in WAYS:
            raise ValueError(f"way {row['way']}, us {us}")
        found.setdefault((row["family"], row["way"]), []).append((int(row["n"]), us))
    return {key: sorted(own) for key, own in found.items()}


def keep(device: str, found: Iterable[tuple[str, str, int, float]]) -> Path:
    """Write measured numbers, (family, way, n, microseconds), into the user's cache; returns the file.

    Earlier numbers of other sizes and ways stay, so that a measurement that is cut short loses none.
    """
    path = cache(device)
    known = {(*key, n): us for key, own in measured_on(device).items() for n, us in own}
    known |= {(family, way, n): us for family, way, n, us in found}
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(FIELDS)
        writer.writerows((device, *key, us) for key, us in known.items())
    measured_on.cache_clear()
    return path


def cache(device: str) -> Path:
    """The file of a device: $XDG_CACHE_HOME/orthobench/costs/<device>.csv, or below ~/.cache."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "orthobench" / "costs" / f"{slug(device)}.csv"


def slug(device: str) -> str:
    """The name of a device as a file's name: lower case, every run of other characters than letters and digits a -."""
    return "-".join("".join(c if c.isalnum() else " " for c in device.lower()).split())


def _at(known: list[tuple[int, float]], n: int) -> float:
    """Between two sizes on the line that connects them; below the first as there, beyond the last in proportion."""
    sizes = [size for size, _ in known]
    place = bisect_left(sizes, n)
    if place == 0:
        return known[0][1]
    low, less = known[place - 1]
    if place == len(known):
        return less * n / low
    high, more = known[place]
    return less + (more - less) * (n - low) / (high - low)
