"""The measured rows as CSV and as Markdown."""

import csv
import platform
from collections.abc import Iterable
from dataclasses import asdict, fields
from itertools import groupby
from pathlib import Path

import torch

from orthobench.bench.timing import Row

HEAD = "| variant | times faster | (wall) | +- | ms | rounds |\n|---|---|---|---|---|---|"


def line(row: Row) -> str:
    """One row for the terminal."""
    cost = f"{row.value:.2f} {row.unit}" if row.value is not None else f"{row.cpu_ms:.2f} ms"
    return f"{row.group:15} {row.case[:42]:42} {row.variant:32} {_number(row.ratio):>8}x  {cost}"


def write(rows: list[Row], folder: Path, device: torch.device) -> tuple[Path, Path]:
    """speed.csv and speed.md in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    table, text = folder / "speed.csv", folder / "speed.md"
    with table.open("w", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Row)])
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)
    text.write_text("\n".join(_markdown(rows, device)) + "\n")
    return table, text


def _markdown(rows: list[Row], device: torch.device) -> Iterable[str]:
    name = torch.cuda.get_device_name() if device.type == "cuda" else f"{_cpu_name()}, one thread"
    yield f"# Speed on {name}, torch {torch.__version__}"
    yield "\nRatios are medians of (first row / this row) over rounds that alternate the variants; above one is faster."
    for (group, case), members in groupby(rows, key=lambda row: (row.group, row.case)):
        yield f"\n## {group}: {case}\n\n{HEAD}"
        for row in members:
            cost = f"{row.value:.2f} {row.unit}" if row.value is not None else f"{row.cpu_ms:.3f} {row.unit}".strip()
            ratios = " | ".join(map(_number, (row.ratio, row.wall_ratio, row.spread)))
            yield f"| {row.variant} | {ratios} | {cost} | {row.rounds or ''} |"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _cpu_name() -> str:
    try:
        found = [text for text in Path("/proc/cpuinfo").read_text().splitlines() if text.startswith("model name")]
        return found[0].partition(":")[2].strip()
    except (OSError, IndexError):
        return platform.machine()
