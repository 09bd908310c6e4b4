"""metrics.csv: one row per logged step, appended as the run goes; a resumed run writes it anew from its checkpoint."""

import zlib
from pathlib import Path
from typing import Any

import torch

from orthobench.recording.files import append_bytes, write_bytes

COLUMNS = ("step", "epoch", "name", "value")


class Curve:
    """Rows (step, epoch, name, value): tidy, so that a new metric never changes the columns."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def cut(self, step: int) -> None:
        """Forget what was written after `step`; a line that was not finished is dropped."""
        rows = [row for row in self.rows() if row["step"] <= step]
        lines = [",".join(COLUMNS), *(f"{r['step']},{r['epoch']},{r['name']},{r['value']!r}" for r in rows)]
        write_bytes(self.path, ("\n".join(lines) + "\n").encode())

    def append(self, step: int, epoch: int, values: dict[str, float]) -> None:
        """Add one row per value."""
        rows = "".join(f"{step},{epoch},{name},{float(value)!r}\n" for name, value in values.items())
        append_bytes(self.path, rows.encode())

    def packed(self) -> torch.Tensor:
        """Every whole row, for a checkpoint: compressed, as bytes (uint8)."""
        content = self.path.read_bytes() if self.path.is_file() else b""
        return torch.frombuffer(bytearray(zlib.compress(content[: content.rfind(b"\n") + 1])), dtype=torch.uint8)

    def restore(self, packed: torch.Tensor | None) -> None:
        """Write the file as it was when it was packed; with its columns only when null."""
        head = (",".join(COLUMNS) + "\n").encode()
        write_bytes(self.path, head if packed is None else zlib.decompress(packed.numpy().tobytes()))

    def rows(self) -> list[dict[str, Any]]:
        """Every whole row: a last line without its end is torn, even where its value reads as a shorter number."""
        if not self.path.is_file():
            return []
        found = []
        for line in self.path.read_bytes().decode(errors="replace").split("\n")[1:-1]:
            try:
                step, epoch, name, value = line.split(",")
                found.append({"step": int(step), "epoch": int(epoch), "name": name, "value": float(value)})
            except ValueError:
                continue
        return found

    def of(self, name: str) -> list[list[float]]:
        """The points [step, value] of one metric."""
        return [[row["step"], row["value"]] for row in self.rows() if row["name"] == name]


def thinned(points: list[list[float]], about: int) -> list[list[float]]:
    """At most about `about` of the points, the first and the last among them."""
    step = max(-(-len(points) // about), 1)
    kept = points[::step]
    return kept if not points or kept[-1] == points[-1] else [*kept, points[-1]]
