"""Finished runs as a pack: a folder with a record for each run, without names of places and machines, and pack.json.

A record holds the settings, every number, the curves in at most 501 points, and what made them. pack.json has the
digest of each, and everything is sealed by its own digest.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from orthobench.common.version import __version__
from orthobench.config.recorded import PLACES, named_files
from orthobench.errors import ConfigError, StorageError
from orthobench.recording.curve import sealed
from orthobench.recording.digest import read_sealed, seal, write_sealed
from orthobench.recording.files import make_folder
from orthobench.study.outside.rules import KEPT, problem
from orthobench.study.outside.texts import telling

PACK, SCHEMA = "pack.json", 1
ASIDE = {"logger": {"name": "csv"}, "cell": None, "timeout": None}  # what only the machine of the run needed


def pack(runs: Sequence[Path], to: Path | None = None) -> Path:
    """Write a pack of finished runs, each checked against its digests; returns its folder.

    Args:
        runs: their folders.
        to: the folder of the pack, new or empty; when None, one here that is named after what is in it.

    Raises:
        ConfigError: a run cannot be given away, or there is something in the folder.
        StorageError: a record or a curve has been changed, or the pack cannot be written.
    """
    records = {folder.name: _record(folder) for folder in runs}
    digests = {f"{name}.json": record["sha256"] for name, record in sorted(records.items())}
    content = {"schema": SCHEMA, "orthobench": __version__, "files": digests}
    place = to or Path(f"submission-{hashlib.sha256(str(digests).encode()).hexdigest()[:10]}")
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise ConfigError(f"{place} is there already: move it away, or name another folder by --to.")
    try:
        make_folder(place)
    except OSError as error:
        raise StorageError(f"{place} cannot be made: {error.strerror}; name another folder by --to.") from error
    for name, record in records.items():
        write_sealed(place / f"{name}.json", record)
    write_sealed(place / PACK, content)
    return place


def _record(folder: Path) -> dict[str, Any]:
    """The record of a run without places and machines, sealed anew."""
    record = read_sealed(folder / "record.json") or {}
    if "config" not in record:
        raise StorageError(f"{folder / 'record.json'} is damaged, or no record: make the run again.")
    sealed(folder, record)
    config = {**record["config"], **PLACES, **ASIDE}
    if named_files(config):
        raise ConfigError(f"{folder} is of data of your own (task.path), which others cannot check: leave it out.")
    if (record.get("sources") or {}).get("plugins"):
        raise ConfigError(f"{folder} is of a plug-in's class, which others do not have: send that first.")
    if config.get("init_from"):
        config["init_from"] = Path(config["init_from"]).name
    config.pop("start", None)
    found = {key: record[key] for key in KEPT if key in record} | {"config": config}
    place = telling(found)
    if place is not None:
        raise ConfigError(
            f"{folder}: its record would tell {place[1]!r} ({place[0]}), "
            "a path or a name of a machine: leave this run out."
        )
    made = seal(found)
    reason = problem(folder.name, made)
    if reason:
        raise ConfigError(f"{folder}: {reason}, so no check would pass it: leave this run out.")
    return made
