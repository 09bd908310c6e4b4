"""The folder of a run that is to be begun: config.yaml, which its driver writes and any process begins the run by."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from orthobench.common.paths import absolute, variable
from orthobench.common.terminal import say
from orthobench.config import recorded
from orthobench.config.settings import Settings
from orthobench.config.yaml_file import read_yaml
from orthobench.errors import ConfigError, StorageError
from orthobench.recording.claim import is_held
from orthobench.recording.digest import owned, owner
from orthobench.recording.files import refuse_links, write_bytes
from orthobench.recording.finished import check_identity

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
    content = owned(yaml.safe_dump(recorded.content_of(settings), sort_keys=False), settings.digest).encode()
    with suppress(OSError):
        if path.is_file() and path.stat().st_size == len(content) and path.read_bytes() == content:
            return
    write_bytes(path, content)


def read(folder: Path) -> Settings:
    """The checked settings of the run that a folder is for.

    Where the data are not in the place that config.yaml names, $ORTHOBENCH_DATA is taken.

    Raises:
        ConfigError: there is no config.yaml, or this version cannot use it.
        StorageError: it is damaged, or edited, or another run's; or the folder is or holds a link.
    """
    path = folder / NAME
    refuse_links(folder)
    try:
        content = read_yaml(path)
    except FileNotFoundError as error:
        raise ConfigError(
            f"{path} is not there: `orthobench plan KEY=VALUE ... --folders` writes the folder of a run."
        ) from error
    except (OSError, ConfigError) as error:
        raise StorageError(f"{path} cannot be read: {' '.join(str(error).split())}") from error
    try:
        settings = recorded.settings_of(content, _runs_root(content, folder), _data_root(content))
    except ConfigError as error:
        raise ConfigError(f"{path} cannot be used by this version of orthobench: {error}") from error
    if owner(path) != settings.digest:
        written = (owner(path) or "no run's")[:10]
        raise StorageError(
            f"{path} is not what was written: its first line has the digest {written}, and its settings are those of "
            f"{settings.digest[:10]}; it was edited, or is of another version of orthobench: let it be written anew."
        )
    if absolute(str(settings.folder)) != absolute(str(folder)):
        raise StorageError(f"{folder} holds the settings of {settings.run_id}: give the folder this name.")
    return settings


def _runs_root(content: Any, folder: Path) -> str:
    """The folder of runs, as it was named where that is still its name."""
    named = content.get("runs_root") if isinstance(content, dict) else None
    here = absolute(str(folder.parent))
    return named if isinstance(named, str) and "\0" not in named and absolute(named) == here else here


def _data_root(content: Any) -> str | None:
    """$ORTHOBENCH_DATA where the folder that is named is not here; null where it is."""
    named, here = content.get("data_root") if isinstance(content, dict) else None, variable("ORTHOBENCH_DATA")
    if not here or (isinstance(named, str) and (Path(named).is_dir() or absolute(named) == absolute(here))):
        return None
    say(f"data_root={named} is no folder here: $ORTHOBENCH_DATA={here} is taken")
    return here
