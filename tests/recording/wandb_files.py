"""What W&B's client wrote into its folders, read without the client: rows of the history, and what names the run."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HEADER, BLOCK = 7, 32768
WHOLE, FIRST, MIDDLE, LAST = 1, 2, 3, 4
Logged = tuple[int, str, float]


@dataclass
class Mirrored:
    """One folder of the client's.

    Attributes:
        run_id: the id of its run.
        group: the run's group.
        project: the run's project.
        config: the settings, by their top-level keys.
        rows: step of training, name and value of everything that was logged.
        media: tables and pictures by name, each with its kind and the path of its file in the folder.
        summary: numbers at the end, by name.
        tags: the run's tags.
        sweep: the id of its sweep.
        artifacts: kind of each artifact, and the names of its files.
    """

    run_id: str = ""
    group: str = ""
    project: str = ""
    config: dict[str, Any] = field(default_factory=dict)
    rows: list[Logged] = field(default_factory=list)
    media: dict[str, dict[str, Any]] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)
    tags: list[str] = field(default_factory=list)
    sweep: str = ""
    artifacts: list[tuple[str, set[str]]] = field(default_factory=list)


def mirrored(wandb: Path, patience_s: float = 30.0) -> list[Mirrored]:
    """All folders of runs in the client's folder, the oldest first; those of killed runs have no end to wait for."""
    return [_read(path, patience_s) for path in sorted(wandb.glob("*run-*/*.wandb"))]


def curve(folder: Path) -> list[Logged]:
    """The rows of a run's metrics.csv."""
    lines = [line.split(",") for line in (folder / "metrics.csv").read_text().splitlines()[1:]]
    return [(int(step), name, float(value)) for step, _, name, value in lines]


def _read(path: Path, patience_s: float) -> Mirrored:
    from wandb.proto import wandb_internal_pb2

    end = time.monotonic() + patience_s  # the client's process writes the file, and may be a moment behind
    while True:
        found, over = Mirrored(), False
        for text in _records(path.read_bytes()):
            record = wandb_internal_pb2.Record()  # type: ignore[attr-defined]
            record.ParseFromString(text)
            over |= record.HasField("exit")
            if record.HasField("run"):
                found.run_id, found.group = record.run.run_id, record.run.run_group
                found.project, found.sweep, found.tags = record.run.project, record.run.sweep_id, list(record.run.tags)
                found.config |= _items(record.run.config.update)
            if record.HasField("config"):
                found.config |= _items(record.config.update)
            if record.HasField("history"):
                values = _items(record.history.item)
                step: Any = values.get("trainer/global_step")
                nested = {tuple(one.nested_key) for one in record.history.item if len(one.nested_key) > 1}
                for name, key in nested:
                    found.media.setdefault(name, {})[key] = values.pop(f"{name}/{key}")
                found.rows += [
                    (step, name, value)
                    for name, value in values.items()
                    if not name.startswith("_") and name not in ("epoch", "trainer/global_step")
                ]
            if record.HasField("summary"):
                found.summary |= _items(record.summary.update)
            if record.HasField("request") or record.HasField("artifact"):
                given = record.artifact
                if given.type:
                    found.artifacts.append((given.type, {one.path for one in given.manifest.contents}))
        if over or time.monotonic() > end:
            return found
        time.sleep(0.1)


def _items(items: Any) -> dict[str, Any]:
    return {one.key or "/".join(one.nested_key): json.loads(one.value_json) for one in items}


def _records(content: bytes) -> Iterator[bytes]:
    """The records of the client's log: blocks of 32 KiB, after a header of 7 bytes which the first one has."""
    place, parts = HEADER, b""
    while place + HEADER <= len(content):
        left = BLOCK - place % BLOCK
        if left < HEADER:
            place += left
            continue
        size, kind = int.from_bytes(content[place + 4 : place + 6], "little"), content[place + 6]
        body = content[place + HEADER : place + HEADER + size]
        place += HEADER + size
        parts = body if kind in (WHOLE, FIRST) else parts + body
        if kind in (WHOLE, LAST):
            yield parts
