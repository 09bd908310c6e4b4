"""The measured rows as CSV and as Markdown."""

import csv
from collections.abc import Iterable
from dataclasses import asdict, fields
from itertools import groupby
from pathlib import Path

import torch

from orthobench.bench.timing import Row
from orthobench.recording.record import hardware

HEAD = "| variant | times faster | (wall) | +- | ms | rounds |\n|---|---|---|---|---|---|"
NOTES = {
    "memory": "Hidden states alone are one value; a plain loop of relu or tanh keeps two, so half is the least.",
    "training": "A run also reads from a loader and checks at every step that loss and gradient are finite.",
}


def line(row: Row) -> str:
    """Line of a row for the terminal."""
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}x"
    return f"{row.group:15} {row.case[:46]:46} {row.variant:32} {ratio:>9}  {_cost(row)}"


class Appended:
    """A CSV file that has every row as soon as it is known."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        with path.open("w", newline="") as file:
            csv.DictWriter(file, [field.name for field in fields(Row)]).writeheader()

    def add(self, row: Row) -> None:
        """Write one row."""
        with self.path.open("a", newline="") as file:
            csv.DictWriter(file, [field.name for field in fields(Row)]).writerow(asdict(row))


def write(rows: list[Row], path: Path, device: torch.device) -> None:
    """Write rows as Markdown, a table for each case."""
    path.write_text("\n".join(_markdown(rows, device)) + "\n")


def _markdown(rows: list[Row], device: torch.device) -> Iterable[str]:
    used = hardware(device)
    name = used["gpu"] or f"{used['cpu']}, one thread"
    yield f"# Speed on {name}, torch {torch.__version__}"
    yield "\nRatios are medians of (first row / this row) over rounds that alternate the variants; above one is faster."
    for (group, case), members in groupby(rows, key=lambda row: (row.group, row.case)):
        note = f"{NOTES[group]}\n\n" if group in NOTES else ""
        yield f"\n## {group}: {case}\n\n{note}{HEAD}"
        for row in members:
            ratios = " | ".join(map(_number, (row.ratio, row.wall_ratio, row.spread)))
            yield f"| {row.variant} | {ratios} | {_cost(row)} | {row.rounds or ''} |"


def _cost(row: Row) -> str:
    value, unit = (row.cpu_ms, f"ms {row.unit}") if row.value is None else (row.value, row.unit)
    return row.unit if value is None else f"{value:.3g} {unit}".strip()


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
