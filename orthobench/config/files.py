"""The configuration files: where they are, which names each group of them offers, and what may be in a user's own."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orthobench.common.paths import outside
from orthobench.config import about, defaults, searched
from orthobench.config.policy import check_values
from orthobench.config.yaml_file import read_yaml
from orthobench.errors import ConfigError

GROUPS = ("model", "task", "optimizer", "schedule", "trainer", "logger", "recipe", "experiment")


def conf_dir() -> Path:
    """The configuration tree: the checkout's conf/ when there is one, else the copy inside the package."""
    package = Path(__file__).resolve().parents[1]
    checkout = package.parent / "conf"
    return checkout if (checkout / "config.yaml").is_file() else package / "conf"


@dataclass(frozen=True)
class Files:
    """The files of conf/ and those of the user's own.

    Attributes:
        folders: further configuration folders (`--config-dir`).
    """

    folders: tuple[Path, ...] = ()

    def options(self, group: str) -> list[str]:
        """The names that a group offers."""
        found = set()
        for folder in (conf_dir(), *self.folders):
            root = folder / group
            found |= {path.relative_to(root).with_suffix("").as_posix() for path in yaml_files(folder, group)}
        return sorted(found)

    def paths(self, group: str, name: str) -> list[Path]:
        """The files of that name, ours first; of all but papers and tables there is one at the most."""
        if Path(name).is_absolute() or ".." in Path(name).parts or "\0" in name:
            return []
        paths = (folder / group / f"{name}.yaml" for folder in (conf_dir(), *self.folders))
        return [path for path in paths if path.is_file()]

    def about(self, group: str, name: str) -> tuple[about.About, dict[str, Any]]:
        """The description of `<group>/<name>.yaml`, and its settings.

        Raises:
            ConfigError: there is no such file, or it is not YAML.
        """
        return about.described(group, self._path(group, name))

    def recipe(self, name: str) -> tuple[str | None, tuple[str, ...]]:
        """The variant that a recipe chooses, and its deviations; neither where there is no such recipe."""
        path = next(iter(self.paths("recipe", name)), None)
        return (None, ()) if path is None else about.recipe(path, version(path))

    def searched(self, model: str) -> dict[str, str]:
        """The ranges in a model's file by setting; those of any model where it has none.

        Raises:
            ConfigError: there is no such model, or its `search:` is wrong.
        """
        path = self._path("model", model)
        return searched.searched(path, version(path))

    def state(self) -> frozenset[tuple[Path, tuple[int, ...]]]:
        """Every YAML file with its `version`."""
        return frozenset((path, version(path)) for folder in (conf_dir(), *self.folders) for path in yaml_files(folder))

    def check(self) -> None:
        """Refuse a user's folders that do more than add values, or hide each other's files.

        Raises:
            ConfigError: one of them is refused, see `check_folder`, or a file of one name is in two of them.
        """
        found: dict[Path, Path] = {}
        for folder in {Path(folder).resolve(): Path(folder) for folder in self.folders}.values():
            check_folder(folder)
            for path in yaml_files(folder):
                other = found.setdefault(path.relative_to(folder), path)
                if other != path:
                    raise ConfigError(f"{path} would not be read: {other} has its name; give it another.")

    def _path(self, group: str, name: str) -> Path:
        path = next(iter(self.paths(group, name)), None)
        if path is None:
            raise ConfigError(
                f"{group}={name} is not known: there is no {group}/{name}.yaml, so write one, or name another."
            )
        return path


def yaml_files(folder: Path, group: str = "") -> list[Path]:
    """The YAML files of a folder, or of a group in it, also behind links to folders inside of it.

    A link to nowhere, by which Emacs locks a file that is open in it, is none; nor is a link to a folder that it is in.

    Raises:
        ConfigError: a link in a folder of the user's leads out of it; what it names may be anything.
    """
    found: list[str] = []
    ours = folder == conf_dir()
    for place, inner, names in os.walk(folder / group, onerror=_unreadable, followlinks=True):
        if not ours:
            _refuse_links_outwards(folder, [Path(place, name) for name in (*inner, *names)])
        inner[:] = [name for name in inner if not _leads_back(f"{place}/{name}")]
        found += (f"{place}/{name}" for name in (*names, *inner) if name.endswith(".yaml"))
    return sorted(Path(path) for path in found if not _leads_nowhere(path))


def own_folder(path: Path, name: str) -> Path | None:
    """The folder of `--config-dir` in which a file has this name in its group; None for a shipped file."""
    folder = path.parents[len(Path(name).parts)]
    return None if folder.resolve() == conf_dir() else folder


def _unreadable(error: OSError) -> None:
    """Refuse a folder that may not be read, whose files would be missed without a word; one may be missing."""
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise ConfigError(f"{error.filename} cannot be read: {error.strerror}; make it readable.") from error


def _refuse_links_outwards(folder: Path, paths: list[Path]) -> None:
    for path in paths:
        if os.path.islink(path) and not _leads_nowhere(path) and outside(path, folder):  # noqa: PTH114  (never fails)
            raise ConfigError(
                f"{path} leads out of --config-dir {folder}, which is refused: give the folder that it leads to by a "
                "--config-dir of its own."
            )


def version(path: Path) -> tuple[int, ...]:
    """Version of a file, which differs once it has changed; empty for one that has just gone, or that is
    refused when read.
    """
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


def _leads_back(path: str) -> bool:
    """Return True if a link leads to a folder that it is in, so that the way through it has no end."""
    return os.path.islink(path) and Path(path).parent.resolve().is_relative_to(Path(path).resolve())  # noqa: PTH114


def _leads_nowhere(path: str | Path) -> bool:
    try:
        return os.path.islink(path) and not Path(path).exists()  # noqa: PTH114  (never fails, and needs no path)
    except OSError:  # a folder that may not be entered, which is told where the file is read
        return False


PLACED = ("recipe", "experiment")  # groups whose files set values outside of their own


def check_folder(folder: Path) -> None:
    """Refuse a user's configuration folder that does more than add values.

    Raises:
        ConfigError: it is not a folder, or a file cannot be read, is not YAML, has the name of a file in conf/, a
            `hydra:` block, `_target_`, or an interpolation other than a plain reference.
    """
    if not Path(folder).is_dir():
        raise ConfigError(
            f"--config-dir {folder} is not a folder: name one that holds model/NAME.yaml or task/NAME.yaml."
        )
    groups = {"published", *(path.name for path in conf_dir().iterdir() if path.is_dir())}
    tops = {path.relative_to(folder).parts[0] for path in yaml_files(folder)}
    if tops and tops.isdisjoint(groups):
        raise ConfigError(
            f"--config-dir {folder} has YAML files, and none in a folder such as model or task: a model belongs into "
            "FOLDER/model/NAME.yaml, where FOLDER is what is given here."
        )
    named: dict[str, list[str]] = {}
    for path in yaml_files(folder):
        if (conf_dir() / path.relative_to(folder)).is_file() and Path(folder).resolve() != conf_dir():
            raise ConfigError(f"{path} would not be read: orthobench has a file of this name; give it another.")
        try:
            content, text = read_yaml(path), path.read_text(encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"{path} cannot be read ({error.strerror}): make it readable, or move it out of "
                              f"--config-dir {folder}.") from error  # fmt: skip
        header = [line for line in text.splitlines() if "@package" in line]
        entries = content.get("defaults") if isinstance(content, dict) else None
        if any("hydra" in line for line in (*header, str(entries or ""))) or (
            isinstance(content, dict) and "hydra" in content
        ):
            raise ConfigError(
                f"{path} sets Hydra's own configuration, which a model or task file may not do: delete those lines."
            )
        if header and path.relative_to(folder).parts[0] not in PLACED:
            raise ConfigError(f"{path}: only files of {' and '.join(PLACED)} may say @package; delete that line.")
        check_values(content, f"{path}: ")
        name = path.relative_to(folder).with_suffix("").as_posix()
        named[name] = [] if entries is None else defaults.named(entries, name, f"{path}: ")
    defaults.refuse_endless(named, f"--config-dir {folder}: ")
