"""The choices of a run put together without Hydra, from files of conf/ that hold nothing but values.

Hydra needs a tenth of a second for each choice of files, and a set of tables has hundreds. Every file is read once, and
what it says is laid over what the files before it say, in the order of the defaults list of conf/config.yaml. Where a
file or a word asks for anything more, Hydra composes; the tests compare the two on every file of conf/.
"""

import copy
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

from orthobench.common import paths
from orthobench.config.about import strip
from orthobench.config.files import GROUPS, conf_dir, version
from orthobench.config.policy import ENVIRONMENT
from orthobench.config.yaml_file import AsOmegaConf, read_yaml
from orthobench.errors import ConfigError

OPTIONAL = "optional recipe"
PAIR = "${model}/${task}"
FROM_ENVIRONMENT = re.compile(r"\$\{oc\.env:(\w+),([\w./-]+)\}")
OF_HYDRA = "override hydra/"
GLOBAL = "# @package _global_"


def composed(chosen: dict[str, str]) -> tuple[dict[str, Any], dict[str, str]] | None:
    """The values of a choice of files, and the file of every group; None where only Hydra can tell them.

    Args:
        chosen: the names that the words of a run give, by group.
    """
    conf = conf_dir()
    root = _file(conf / "config.yaml", version(conf / "config.yaml"))
    if root is None:
        return None
    content, _ = root
    names = _names(content["defaults"], chosen)
    if names is None:
        return None
    values = {key: copy.deepcopy(value) for key, value in content.items() if key not in ("defaults", "hydra")}
    for group, name in names.items():
        path = conf / group / f"{name}.yaml"
        if ".." in name or name.startswith("/"):
            return None
        if group == "recipe" and group not in chosen and not path.is_file():
            continue
        found = _file(path, version(path))
        if found is None or found[1] != (group == "recipe"):
            return None
        _lay_over(values, found[0] if group == "recipe" else {group: found[0]})
    try:
        resolved = {key: _resolved(value) for key, value in values.items()}
    except LookupError:
        return None
    strip(resolved, frozenset())
    return resolved, names


def _names(defaults: Any, chosen: dict[str, str]) -> dict[str, str] | None:
    """The file of every group, in the order in which they are laid over each other; None for an unknown list."""
    if not isinstance(defaults, list) or defaults[:1] != ["_self_"]:
        return None
    names: dict[str, str] = {}
    for entry in defaults[1:]:
        if not isinstance(entry, dict) or len(entry) != 1:
            return None
        ((group, name),) = entry.items()
        if group.startswith(OF_HYDRA):
            continue
        if group == OPTIONAL and name == PAIR:
            group, name = "recipe", f"{names.get('model')}/{names.get('task')}"
        if group not in GROUPS or not isinstance(name, str):
            return None
        names[group] = chosen.get(group, name)
    return names if set(chosen) <= set(names) else None


@lru_cache(maxsize=1024)
def _file(path: Path, version: tuple[int, ...]) -> tuple[dict[str, Any], bool] | None:
    """Content of a file, and whether it is of the whole configuration; None for one that is Hydra's to read."""
    try:
        content, text = read_yaml(path, AsOmegaConf), path.read_text(encoding="utf-8")
    except (ConfigError, OSError, UnicodeDecodeError):
        return None
    headers = [line.strip() for line in text.splitlines() if "@package" in line]
    content = {} if content is None else content
    root = path.name == "config.yaml" and path.parent == conf_dir()
    plain = isinstance(content, dict) and all(isinstance(key, str) for key in content)
    if not plain or headers not in ([], [GLOBAL]) or (not root and ("defaults" in content or "hydra" in content)):
        return None
    return None if not root and ("${" in text or "???" in text) else (content, bool(headers))


def _lay_over(values: dict[str, Any], more: dict[str, Any]) -> None:
    """Let values take the place of those of the same keys, mappings key by key."""
    for key, value in more.items():
        if isinstance(value, dict) and isinstance(values.get(key), dict):
            _lay_over(values[key], value)
        else:
            values[key] = copy.deepcopy(value)


def _resolved(value: Any) -> Any:
    """A value of conf/config.yaml, those that the environment gives looked up.

    Raises:
        LookupError: it refers to anything else.
    """
    if not isinstance(value, str) or "${" not in value:
        return value
    found = FROM_ENVIRONMENT.fullmatch(value)
    if found is None or found[1] not in ENVIRONMENT:
        raise LookupError(value)
    return paths.variable(found[1]) or found[2]
