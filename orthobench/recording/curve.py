"""metrics.csv: one row per logged value, appended during the run; a resumed run rewrites it from its checkpoint."""

import hashlib
import os
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orthobench.errors import StorageError
from orthobench.recording.files import append_bytes, finite, write_bytes
from orthobench.recording.shape import RECORD

if TYPE_CHECKING:  # a curve is read where nothing is computed
    import torch

TAIL = 4096  # bytes at the end of a metrics.csv that are looked at while it grows
SEAL = "metrics_csv"  # the key of a record that has the digest of its curves; earlier versions wrote none
LARGEST = 1 << 28  # bytes; a run of a million steps has a fifth of it
POINTS = 500  # points of a curve in record.json, about
COLUMNS = ("step", "epoch", "name", "value")


class Curve:
    """Rows (step, epoch, name, value), so that a new metric never changes the columns."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def cut(self, step: int) -> None:
        """Remove all rows after `step`, and a last line that was not finished."""
        rows = [row for row in self.rows() if row["step"] <= step]
        lines = [",".join(COLUMNS), *(f"{r['step']},{r['epoch']},{r['name']},{r['value']!r}" for r in rows)]
        write_bytes(self.path, ("\n".join(lines) + "\n").encode())

    def append(self, step: int, epoch: int, values: dict[str, float]) -> None:
        """Add one row per value."""
        rows = "".join(f"{step},{epoch},{name},{float(value)!r}\n" for name, value in values.items())
        append_bytes(self.path, rows.encode())

    def packed(self) -> "torch.Tensor":
        """Every complete row, compressed, as a uint8 tensor for a checkpoint."""
        import torch

        content = self.path.read_bytes() if self.path.is_file() else b""
        return torch.frombuffer(bytearray(zlib.compress(content[: content.rfind(b"\n") + 1])), dtype=torch.uint8)

    def restore(self, packed: "torch.Tensor | None") -> None:
        """Write the file as it was when it was packed; for None, write only the header.

        Raises:
            StorageError: what was packed is damaged or too large.
        """
        head = (",".join(COLUMNS) + "\n").encode()
        write_bytes(self.path, head if packed is None else self._unpacked(packed.numpy().tobytes()))

    def _unpacked(self, packed: bytes) -> bytes:
        stream = zlib.decompressobj()
        try:
            content = stream.decompress(packed, LARGEST)
        except zlib.error as error:
            raise StorageError(
                f"the curves in the checkpoint of {self.path.parent} are damaged: {error}"
                "; move that folder away to begin anew."
            ) from error
        if not stream.eof:
            raise StorageError(
                f"the curves in the checkpoint of {self.path.parent} have more than {LARGEST:,} bytes"
                "; move that folder away to begin anew."
            )
        return content

    def digest(self) -> str | None:
        """SHA-256 of the file in hexadecimal; None where there is none."""
        if not self.path.is_file():
            return None
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def rows(self) -> list[dict[str, Any]]:
        """Every complete row; a last line without a line end is left out, because its value may be cut off.

        Raises:
            StorageError: the file has more than LARGEST bytes.
        """
        if not self.path.is_file():
            return []
        if self.path.stat().st_size > LARGEST:
            raise StorageError(
                f"{self.path} has {self.path.stat().st_size:,} bytes; at most {LARGEST:,} are read"
                "; move its folder away to begin anew."
            )
        return _rows(self.path.read_bytes().decode(errors="replace").split("\n")[1:-1])

    def of(self, name: str) -> list[list[float]]:
        """The points [step, value] of one metric."""
        return self.points().get(name, [])

    def points(self) -> dict[str, list[list[float]]]:
        """The points [step, value] of every metric, by its name."""
        found: dict[str, list[list[float]]] = {}
        for row in self.rows():
            found.setdefault(row["name"], []).append([row["step"], row["value"]])
        return found


def tail(path: Path) -> list[dict[str, Any]]:
    """The complete rows in the last bytes of a metrics.csv; none where it is not there or cannot be read."""
    try:
        with path.open("rb") as file:
            file.seek(max(file.seek(0, os.SEEK_END) - TAIL, 0))
            return _rows(file.read().decode(errors="replace").split("\n")[1:-1])
    except OSError:
        return []


def _rows(lines: list[str]) -> list[dict[str, Any]]:
    """The rows in some lines, of which those of another form are left out."""
    found = []
    for line in lines:
        try:
            step, epoch, name, value = line.split(",")
            found.append({"step": int(step), "epoch": int(epoch), "name": name, "value": float(value)})
        except ValueError:
            continue
    return found


def sealed(folder: Path, record: dict[str, Any]) -> Curve:
    """The curves of a finished run, which must be those that its record was written with.

    A record without their digest, `unsealed`, is only compared with the points that it has itself.

    Raises:
        StorageError: they have changed since, or are missing.
    """
    curve, known = Curve(folder / "metrics.csv"), record.get(SEAL)
    found = curve.digest()
    if found is None and (known or record.get("curve")):
        problem = "is missing"
    elif known is not None:
        problem = "" if found == known else "has been changed since its record was written"
    else:
        kept, points = (record.get("curve") or {}).items(), curve.points()
        differing = next((n for n, own in kept if finite(thinned(points.get(n, []), POINTS)) != own), None)
        problem = f"has been changed: {differing} is not what record.json has" if differing else ""
    if problem:
        raise StorageError(f"{curve.path} {problem}; move {RECORD} away, and the same command writes both again.")
    return curve


def thinned(points: list[list[float]], about: int) -> list[list[float]]:
    """At most `about` + 1 of the points, at equal distances; the first and the last are always among them."""
    step = max(-(-len(points) // about), 1)
    kept = points[::step]
    return kept if not points or kept[-1] == points[-1] else [*kept, points[-1]]
