"""Writing a file so that a reader sees either the old content or the new, never a part."""

import contextlib
import json
import math
import os
import uuid
from pathlib import Path
from typing import Any

from orthobench.errors import StorageError


def write_bytes(path: Path, content: bytes) -> None:
    """Write through a temporary file in the same folder: flush, fsync, rename, fsync of the folder.

    Raises:
        StorageError: the folder or the disk refuses.
    """
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror or error}.") from error
    finally:  # also when a signal interrupts
        with contextlib.suppress(OSError):
            temporary.unlink()


def write_json(path: Path, value: Any) -> None:
    """Write JSON without NaN or infinity: a number that is not finite becomes null."""
    write_bytes(path, (json.dumps(finite(value), indent=2, allow_nan=False) + "\n").encode())


def read_json(path: Path) -> dict[str, Any] | None:
    """The object in a JSON file; null when there is no file or it is not one whole object."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def finite(value: Any) -> Any:
    """`value` with every number that is not finite replaced by null."""
    if isinstance(value, dict):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
