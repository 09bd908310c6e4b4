"""Files behind a run, beside the package and its settings: plug-in modules, YAML files and data, by SHA-256.

    {"plugins": {"my_cells": "9f86...", ...}, "yaml": {"model/mgu.yaml": ...}, "data": {"mine.npz": ...}}

Published data that were not compared with their digests (`data.verify=false`) have `"unverified": true` beside these.
Data are named by their place in `data_root`; more than a hundred files of one kind are one entry, such as
`timit/**/*.wav`. All that a YAML file can say is among the settings, so that one which has changed is told, and a run
of the same settings is still the same.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from orthobench.config.settings import Settings
from orthobench.errors import ConfigError
from orthobench.recording.file_digest import digest_of_file
from orthobench.recording.plugin_modules import changed_modules, plugin_modules

SEVERAL = 100
MOST = 100_000  # files of a data set
LARGEST = 1 << 33  # bytes of a file of data, as in datasets/zips.py
OF_PACKAGE = "/orthobench/datasets/digests.json"  # which records of earlier versions have among their data
ENDLESS = ("/proc/", "/sys/", "/dev/")  # where files are that have no end, such as /proc/kcore
PATTERN = re.compile(r"([^/*?\[\0]+/)?\*\*/\*[^/*?\[\0]*")  # of the files of one kind, as `_data` writes it
Digests = dict[str, str]
Sources = dict[str, Any]


def sources(settings: Settings, data: Iterable[Path]) -> Sources:
    """Files behind a run, by digest.

    Args:
        settings: its settings, which name its classes and the YAML files from folders of `--config-dir`.
        data: the files that its task has read.
    """
    return {
        "plugins": plugin_modules(settings.parts),
        "yaml": dict(settings.foreign),
        "data": _data(data, Path(settings.run["data_root"]), _own_folders(settings)),
        **({} if settings.data["verify"] else {"unverified": True}),
    }


def changed(known: Sources | None, settings: Settings) -> list[str]:
    """The plug-ins and data that are no longer those of a record; none where it does not say.

    Data that are not there are no others: a finished run needs none.
    """
    if not isinstance(known, dict):
        return []
    root = Path(settings.run["data_root"])
    modules = [f"the plug-in {name}" for name in changed_modules(known.get("plugins") or {}, settings.parts)]
    data = {name: (digest, _entry(root, name)) for name, digest in data_of(known).items()}
    unverified = ["data.verify, which was false"] if known.get("unverified") and settings.data["verify"] else []
    return [
        *unverified,
        *modules,
        *(f"the data in {name}" for name, (old, now) in data.items() if now not in (None, old)),
    ]


def changed_yaml(known: Sources | None, settings: Settings) -> list[str]:
    """The YAML files from folders of `--config-dir` that are no longer those of a record."""
    old = (known or {}).get("yaml") or {}
    return [name for name, digest in settings.foreign if old.get(name) not in (None, digest)]


def refuse_changed(known: Sources | None, settings: Settings, begun: str = "made") -> None:
    """Refuse a run whose plug-ins or data are no longer what it was made, or begun, with; nothing is overwritten.

    Raises:
        ConfigError: they have changed.
    """
    found = changed(known, settings)
    if found:
        raise ConfigError(
            f"{settings.folder} is stale: it was {begun} before a change of {', '.join(found)}; undo that, or move the "
            "folder away, or use another runs_root= to run anew."
        )


def refuse_unrecorded(known: Sources | None, files: Iterable[Path], name: str) -> None:
    """Refuse to read files that the settings of a run name, unless they are those that it was made of.

    A run's folder may be somebody else's, and would have any file of one's own read by its name. A file that is not
    there is left to the task to miss.

    Args:
        known: what the run is made of, by its record.
        files: the files that its settings name.
        name: what names them.

    Raises:
        ConfigError: one of them is no plain file, or its digest is none of those in the record.
    """
    digests = set(data_of(known).values())
    for path in (path for path in files if os.path.lexists(path)):
        if digest_of_data(path) in digests:
            continue
        if os.path.abspath(path) in data_of(known):  # noqa: PTH100  (as it is named there)
            raise ConfigError(f"{name} is stale: it was trained before a change of the data in {path}; undo that.")
        raise ConfigError(
            f"{path}, which {name} names, is not read: it is not what the run was trained on, by the digests of its "
            "data in record.json"
            "; put the right file there."
        )


def data_of(known: Sources | None) -> Digests:
    """The data of a record, without the file of the package's that those of earlier versions named beside them."""
    data = (known or {}).get("data") or {}
    return {name: digest for name, digest in data.items() if not name.endswith(OF_PACKAGE)}


def combined(digests: Digests | None) -> str | None:
    """Digest of many digests; None for none."""
    return hashlib.sha256(json.dumps(digests, sort_keys=True).encode()).hexdigest() if digests else None


def _own_folders(settings: Settings) -> set[Path]:
    """The folders of files of the user's own, which other settings of `data_root` do not move."""
    named = (settings.task.get(key) for key in settings.parts.task.own_files)
    return {Path(path).parent for path in named if isinstance(path, str)}


def _data(files: Iterable[Path], root: Path, own: set[Path]) -> Digests:
    """Data files by their place in `data_root`; those elsewhere, and the user's `own`, by their whole path."""
    home = Path(os.path.abspath(root))  # noqa: PTH100  (as the files were named)
    kinds: dict[tuple[str, str], list[str]] = {}
    found = []
    for path in files:
        if not path.is_relative_to(home) or path.parent in own:
            found.append(str(path))
            continue
        name = path.relative_to(home)
        top = f"{name.parts[0]}/" if len(name.parts) > 1 else ""
        kinds.setdefault((top, name.suffix), []).append(str(name))
    for (top, suffix), names in kinds.items():
        found += [f"{top}**/*{suffix}"] if len(names) > SEVERAL else names
    entries = {name: _entry(root, name) for name in sorted(found)}
    return {name: digest for name, digest in entries.items() if digest is not None}


def _entry(root: Path, name: str) -> str | None:
    """The digest of a file, or of all files of a pattern; None where there is none, or no such file is data."""
    with suppress(OSError, ValueError):  # a null byte
        if "**" not in name:
            return digest_of_data(root / name)
        if PATTERN.fullmatch(name) is None or name.startswith("../"):
            return None
        top, _, ending = name.rpartition("**/*")
        paths = _ending_in(ending, root / top)
        return combined({str(path.relative_to(root)): digest_of_file(path) for path in paths})
    return None


def digest_of_data(path: Path) -> str | None:
    """The digest of a plain file with an end; None for anything else."""
    with suppress(OSError, ValueError):  # a null byte
        if path.is_file() and path.stat().st_size <= LARGEST and not str(path.resolve()).startswith(ENDLESS):
            return digest_of_file(path)
    return None


def _ending_in(ending: str, folder: Path) -> list[Path]:
    """The files below a folder whose names end so, sorted; none where there are too many to be a data set's."""
    found, seen = [], 0
    for place, inner, names in os.walk(folder):
        seen += len(inner) + len(names)
        if seen > MOST:
            return []
        found += [Path(place) / name for name in names if name.endswith(ending)]
    return sorted(path for path in found if path.is_file())
