"""The keys by which a configuration file describes itself, beside its settings.

description: one line that `orthobench list` shows
cite: a BibTeX key, or a list of them, that `orthobench cite` looks up in the .bib files
search: of a model, the settings that fair tables search, see `searched.py`

None is a setting: all are taken out of a composed configuration, so that no constructor and no run id sees them.
"""

import hashlib
import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from orthobench.common.schema import coerce
from orthobench.config.searched import ranges
from orthobench.config.yaml_file import read_yaml
from orthobench.errors import ConfigError

KEYS: dict[str, Any] = {"description": str, "cite": str | list[str]}
SEARCH = "search"
SECTIONS = {"model": (*KEYS, SEARCH), "task": tuple(KEYS)}


@dataclass(frozen=True)
class About:
    """The description of a configuration file.

    Attributes:
        description: one line; empty where the file has none.
        cite: BibTeX keys; None where the file has no `cite`, empty where there is nothing to cite.
    """

    description: str
    cite: tuple[str, ...] | None


def about(content: Any, place: str) -> About:
    """The `description` and the `cite` of a file's content; `place` is named where one of them is wrong.

    Raises:
        ConfigError: one has the wrong type.
    """
    values = content if isinstance(content, dict) else {}
    description, cite = (coerce(values.get(key), kind | None, f"{place}.{key}") for key, kind in KEYS.items())
    keys = (cite,) if isinstance(cite, str) else None if cite is None else tuple(cite)
    return About(" ".join((description or "").split()), keys)


def described(group: str, path: Path) -> tuple[About, dict[str, Any]]:
    """The description of a file of a group, and its settings.

    Raises:
        ConfigError: it is not YAML.
    """
    content = read_yaml(path) or {}
    if not isinstance(content, dict):
        raise ConfigError(f"{path} needs lines of the form `key: value`.")
    return about(content, str(path)), {
        key: value for key, value in content.items() if key not in SECTIONS.get(group, KEYS)
    }


@lru_cache(maxsize=256)
def recipe(path: Path, version: tuple[int, ...]) -> tuple[str | None, tuple[str, ...]]:
    """The variant that a recipe chooses, and its deviations."""
    content = read_yaml(path)
    if not isinstance(content, dict):
        return None, ()
    deviations = coerce(content.get("deviations", []), list[str], f"{path}.deviations")
    return coerce(content.get("variant"), str | None, f"{path}.variant"), tuple(deviations)


def digest(path: Path) -> str:
    """The digest of what a YAML file sets, without its description and its comments."""
    content: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    plain = {key: value for key, value in content.items() if key not in KEYS} if isinstance(content, dict) else content
    return hashlib.sha256(json.dumps(plain, sort_keys=True, default=str).encode()).hexdigest()


def strip(values: dict[str, Any], typed: frozenset[str]) -> None:
    """Remove what only describes from the composed model and task, except a key that was typed, which is refused.

    Raises:
        ConfigError: one has the wrong type.
    """
    for section, keys in SECTIONS.items():
        own = values.get(section)
        if isinstance(own, dict):
            about(own, section)
            if SEARCH in keys and SEARCH in own:
                ranges(own[SEARCH], f"{section}.{SEARCH}")
            for key in keys:
                if f"{section}.{key}" not in typed:
                    own.pop(key, None)
