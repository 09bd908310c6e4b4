"""Checkpoints that are never half written: a digest at the end, an atomic rename, and two generations.

torch.load does not notice a flipped bit, and Lightning's own saving is not atomic across file systems.
"""

import hashlib
import io
from pathlib import Path
from typing import Any

from orthobench.errors import MemoryExhausted, StorageError
from orthobench.recording.files import write_bytes

DIGEST = hashlib.sha256().digest_size
LARGEST = 1 << 36  # bytes


class SafeCheckpointIO:
    """Writes payload and SHA-256 into one file; the file that it replaces is kept as `<name>.previous`.

    It is a `CheckpointIO` of Lightning's, which a run says to Lightning.
    """

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any = None) -> None:
        """Write a checkpoint and read it back; see `write_bytes`.

        Raises:
            StorageError: it cannot be written, or what is read back differs.
        """
        import torch

        buffer = io.BytesIO()
        torch.save(checkpoint, buffer)
        payload = buffer.getvalue()
        path, digest = Path(path), hashlib.sha256(payload).digest()
        whole = verified(path) is not None  # a damaged file must not displace the whole one before it
        write_bytes(path, payload + digest, keep=previous(path) if whole else None)
        if digest_of(path) != digest.hex():
            raise StorageError(f"{path} does not read back as it was written; look at the disk.")

    def load_checkpoint(self, path: Any, map_location: Any = None, weights_only: bool | None = True) -> dict[str, Any]:
        """Read a checkpoint; only plain data is unpickled.

        Raises:
            MemoryExhausted: there is no room for it.
            StorageError: it cannot be read or its digest does not match.
        """
        import torch

        content = verified(Path(path))
        if content is None:
            raise StorageError(f"{path} is damaged: its digest does not match; delete it to go back to an earlier one.")
        try:
            return torch.load(io.BytesIO(content), map_location=map_location or "cpu", weights_only=True)
        except (MemoryError, torch.OutOfMemoryError) as error:
            raise MemoryExhausted(
                f"{path} does not fit in memory: {error}; run on a machine with more memory."
            ) from error
        except Exception as error:  # torch raises many kinds
            raise StorageError(f"{path} is not a checkpoint of plain data; delete it to start again.") from error

    def remove_checkpoint(self, path: Any) -> None:
        """Delete a checkpoint."""
        Path(path).unlink(missing_ok=True)

    def teardown(self) -> None:
        """Close nothing."""


def previous(path: Path) -> Path:
    """Path of the generation before `path`."""
    return path.with_name(path.name + ".previous")


def verified(path: Path) -> bytes | None:
    """The payload of a checkpoint of at most LARGEST bytes whose digest matches; None when it is missing or damaged."""
    try:
        if not path.is_file() or path.stat().st_size > LARGEST:  # a pipe would be waited for
            return None
        content = path.read_bytes()
    except OSError:
        return None
    payload, digest = content[:-DIGEST], content[-DIGEST:]
    return payload if hashlib.sha256(payload).digest() == digest else None


def digest_of(path: Path) -> str | None:
    """The digest of a whole checkpoint in hexadecimal; None when it is missing or damaged."""
    payload = verified(path)
    return None if payload is None else hashlib.sha256(payload).hexdigest()


def newest(path: Path) -> Path | None:
    """`path` if it is whole, else the generation before it, else None."""
    return next((candidate for candidate in (path, previous(path)) if verified(candidate) is not None), None)


def load_run(path: Path) -> dict[str, Any]:
    """A checkpoint that has what one of a run has, with weights that are finite.

    Raises:
        StorageError: it cannot be read, or is none.
    """
    state = SafeCheckpointIO().load_checkpoint(path)
    from orthobench.recording.checkpoint_shape import problem

    reason = problem(state)
    if reason is not None:
        raise StorageError(f"{path} is not a checkpoint of a run: {reason}; delete it to go back to an earlier one.")
    return state


def load_own(path: Path, identity: str) -> dict[str, Any]:
    """The checkpoint of the run whose settings have this digest; an old one that has no digest is taken for its own.

    Raises:
        StorageError: it cannot be read, or is another run's.
    """
    state = load_run(path)
    found = (state["callbacks"]["Saver"].get("origin") or {}).get("identity", identity)
    if found != identity:
        raise StorageError(
            f"{path} is another run's: its settings have the digest {found[:10]}, those of this run have "
            f"{identity[:10]}; delete it to start this run anew."
        )
    return state


def of_step(step: int | None, identity: str, *paths: Path) -> Path | None:
    """The first undamaged checkpoint of a step among the files and their previous generations; None if none is.

    Raises:
        StorageError: one of them is another run's, see `load_own`.
    """
    for path in (candidate for named in paths for candidate in (named, previous(named))):
        if verified(path) is not None and load_own(path, identity)["global_step"] == step:
            return path
    return None
