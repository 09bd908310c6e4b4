"""What a run was made of beside the package and its settings: plug-in modules, YAML files and data, by SHA-256.

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

import yaml

from orthobench.config.about import KEYS as ABOUT
from orthobench.config.settings import Settings
from orthobench.errors import ConfigError
from orthobench.recording.file_digest import digest_of_file
from orthobench.recording.plugin_modules import changed_modules, plugin_modules

SEVERAL = 100
OF_PACKAGE = "/orthobench/datasets/digests.json"  # which records of earlier versions have among their data
ENDLESS = ("/proc/", "/sys/", "/dev/")  # where files are that have no end, such as /proc/kcore
PATTERN = re.compile(r"([^/*?\[\0]+/)?\*\*/\*[^/*?\[\0]*")  # of the files of one kind, as `_data` writes it
Digests = dict[str, str]
Sources = dict[str, Any]


def sources(settings: Settings, data: Iterable[Path]) -> Sources:
    """What a run is made of.

    Args:
        settings: its settings, which name its classes and the YAML files from folders of `--config-dir`.
        data: the files that its task has read.
    """
    return {
        "plugins": plugin_modules(settings.parts),
        "yaml": {name: _yaml(path) for name, path in settings.foreign},
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
    return [name for name, path in settings.foreign if old.get(name) not in (None, _yaml(path))]


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


def data_of(known: Sources | None) -> Digests:
    """The data of a record, without the file of the package's that those of earlier versions named beside them."""
    data = (known or {}).get("data") or {}
    return {name: digest for name, digest in data.items() if not name.endswith(OF_PACKAGE)}


def combined(digests: Digests | None) -> str | None:
    """One digest of many; null for none."""
    return hashlib.sha256(json.dumps(digests, sort_keys=True).encode()).hexdigest() if digests else None


def _yaml(path: Path) -> str:
    """The digest of what a YAML file sets, without its description and its comments."""
    content: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    plain = {key: value for key, value in content.items() if key not in ABOUT} if isinstance(content, dict) else content
    return hashlib.sha256(json.dumps(plain, sort_keys=True, default=str).encode()).hexdigest()


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
    """The digest of a file, or of all files of a pattern; null where there is none, or no such file is data."""
    with suppress(OSError, ValueError):  # a null byte
        if "**" not in name:
            path = root / name
            return digest_of_file(path) if path.is_file() and not str(path.resolve()).startswith(ENDLESS) else None
        if PATTERN.fullmatch(name) is None or name.startswith("../"):
            return None
        paths = sorted(path for path in root.glob(name) if path.is_file())
        return combined({str(path.relative_to(root)): digest_of_file(path) for path in paths})
    return None
