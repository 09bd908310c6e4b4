"""The folder of a run that is to be begun: config.yaml, which its driver writes and any process begins the run by.

Under `start` it has the digests of the files outside of the folder that the settings name. Such a file is read only if
it still has its digest, as the folder may have come from somebody else, who would have any file of one's own read.
"""

import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from orthobench.common.paths import absolute, variable
from orthobench.common.registry import find
from orthobench.common.terminal import say
from orthobench.config import recorded
from orthobench.config.settings import Settings
from orthobench.config.yaml_file import read_yaml
from orthobench.errors import ConfigError, StorageError
from orthobench.recording.claim import is_held
from orthobench.recording.digest import owned, owner
from orthobench.recording.files import refuse_links, write_bytes
from orthobench.recording.finished import check_identity
from orthobench.recording.shape import RECORD
from orthobench.recording.sources import digest_of_data

NAME = "config.yaml"


def begin(settings: Settings) -> Path:
    """Write the folder by which any process can begin a run; returns its whole path.

    One in which a process works, which has written the same settings, is left as it is.

    Raises:
        ConfigError: the folder is that of another run of the same short name.
        StorageError: it is another run's, is or holds a link, or cannot be written.
    """
    path = settings.folder / NAME
    refuse_links(settings.folder)
    check_identity(settings, path, owner(path))
    if not is_held(settings.folder):
        write(settings)
    return Path(absolute(str(settings.folder)))


def write(settings: Settings) -> None:
    """Write config.yaml, unless it says the same already.

    Raises:
        StorageError: it cannot be written.
    """
    path, first = settings.folder / NAME, settings.run.get("init_from")
    if first and (Path(first) / NAME).is_file():  # not a name beside the run, so that it must be found from anywhere
        settings = replace(settings, run=settings.run | {"init_from": absolute(first)})
    kept = recorded.content_of(settings)
    digests = _digests(kept)
    if digests:
        kept[recorded.START] = kept.get(recorded.START, {}) | {recorded.DATA: digests}
    content = owned(yaml.safe_dump(kept, sort_keys=False), settings.digest).encode()
    with suppress(OSError):
        if path.is_file() and path.stat().st_size == len(content) and path.read_bytes() == content:
            return
    write_bytes(path, content)


def read(folder: Path) -> Settings:
    """The checked settings of the run that a folder is for.

    Where the data are not in the place that config.yaml names, $ORTHOBENCH_DATA is taken.

    Raises:
        ConfigError: there is no config.yaml, this version cannot use it, or it names a file that is not the one of
            which it has the digest.
        StorageError: it is damaged, or edited, or another run's; or the folder is or holds a link.
    """
    path = folder / NAME
    refuse_links(folder)
    try:
        content = read_yaml(path)
    except FileNotFoundError as error:
        raise ConfigError(
            f"{path} is not there: make the folder of a run by `orthobench plan KEY=VALUE ... --folders`."
        ) from error
    except (OSError, ConfigError) as error:
        raise StorageError(
            f"{path} cannot be read, so write it again by `orthobench plan KEY=VALUE ... --folders`: "
            f"{' '.join(str(error).split())}"
        ) from error
    _refuse_other_files(content, path)
    try:
        settings = recorded.settings_of(content, _runs_root(content, folder), _data_root(content))
    except ConfigError as error:
        raise ConfigError(
            f"{path} cannot be used by this version, "
            f"so write it again by `orthobench plan KEY=VALUE ... --folders`: {error}"
        ) from error
    if owner(path) != settings.digest:
        written = (owner(path) or "no run's")[:10]
        raise StorageError(
            f"{path} is not what was written: its first line has the digest {written}, and its settings are those of "
            f"{settings.digest[:10]}; write it again by `orthobench plan KEY=VALUE ... --folders`."
        )
    if absolute(str(settings.folder)) != absolute(str(folder)):
        raise StorageError(f"{folder} holds the settings of {settings.run_id}: give the folder this name.")
    return settings


def _refuse_other_files(content: Any, path: Path) -> None:
    start = content.get(recorded.START) if isinstance(content, dict) else None
    known = start.get(recorded.DATA) if isinstance(start, dict) else None
    for name, digest in _digests(content).items():
        if digest is None or not isinstance(known, dict) or known.get(name) != digest:
            raise ConfigError(
                f"{name}, which {path} names, is not read: it is not the file that was there when that was written, by "
                "the digest in it; write it again by `orthobench plan KEY=VALUE ... --folders`."
            )


def _digests(content: Any) -> dict[str, str | None]:
    """The digests of the files outside that settings name, as far as they are there; None for what is no plain file."""
    named, task = recorded.named_files(content), content.get("task") if isinstance(content, dict) else None
    if isinstance(task, dict) and isinstance(task.get("name"), str):
        with suppress(ConfigError):
            own = (task.get(key) for key in find("task", task["name"], "task").own_files)
            named += [Path(one) for one in own if isinstance(one, str) and one and "\0" not in one]
    first = content.get("init_from") if isinstance(content, dict) else None
    if isinstance(first, str) and "\0" not in first and Path(first).name != first:
        named.append(Path(first) / RECORD)
    return {str(path): digest_of_data(path) for path in named if os.path.lexists(path)}


def _runs_root(content: Any, folder: Path) -> str:
    """The folder of runs, as it was named where that is still its name."""
    named = content.get("runs_root") if isinstance(content, dict) else None
    here = absolute(str(folder.parent))
    return named if isinstance(named, str) and "\0" not in named and absolute(named) == here else here


def _data_root(content: Any) -> str | None:
    """$ORTHOBENCH_DATA where the folder that is named is not here; None where it is."""
    named, here = content.get("data_root") if isinstance(content, dict) else None, variable("ORTHOBENCH_DATA")
    if not here or (isinstance(named, str) and (Path(named).is_dir() or absolute(named) == absolute(here))):
        return None
    say(f"data_root={named} is no folder here: $ORTHOBENCH_DATA={here} is taken")
    return here
