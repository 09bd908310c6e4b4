"""From the settings of a run that has been to the words that ask for it again, and to a recipe that holds them.

A run records what it was, not what was typed. The words, which `best` prints, are those settings that the model and the
task, with the paper's recipe for the two, do not bring by themselves. `tune` writes the recipe.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from orthobench.config.configuration import Configuration
from orthobench.config.places import word
from orthobench.config.recorded import by_key
from orthobench.config.settings import Settings
from orthobench.errors import ConfigError

CHOICES = ("model.network", "model.cell", "model.recurrent", "T", "variant")
STAGES: tuple[Callable[[str], bool], ...] = (  # what a later one follows from
    lambda key: key in ("optimizer", "schedule"),
    lambda key: key in CHOICES or key.startswith("task."),
    lambda key: key == "model.hidden_size",
    lambda key: True,
)


def words(values: Mapping[str, Any], configuration: Configuration) -> list[str]:
    """The words that ask for a run with these settings; none that the model, the task and the recipe bring along.

    Args:
        values: all settings of the run.
        configuration: that of its model and task.

    Raises:
        ConfigError: its model or task is not known here, or no words give the same run in this version.
    """
    wanted = by_key(values)
    for group in ("model", "task"):
        if wanted[group] not in configuration.options(group):
            raise ConfigError(f"{group}={wanted[group]} is in no folder given here: add --config-dir FOLDER.")
    found = [f"model={wanted['model']}", f"task={wanted['task']}"]
    for belongs in STAGES:
        found += [word(key, value) for key, value in _missing(wanted, _composed(found, configuration)) if belongs(key)]
    made = configuration.settings(found)
    wrong = {key for key, _ in _missing(wanted, made)} | (set(by_key(made.as_dict())) - set(wanted))
    if wrong:
        named = ", ".join(sorted(wrong))
        raise ConfigError(
            f"no words give these settings in this version of orthobench, which differs in {named}"
            "; use the version that made the run."
        )
    return found


def recipe(values: Mapping[str, Any], configuration: Configuration) -> dict[str, Any]:
    """A recipe, by section, with which the model and the task of these settings get all of them but the seed.

    Raises:
        ConfigError: see `words`.
    """
    wanted = by_key(values)
    base = configuration.settings([f"model={wanted['model']}", f"task={wanted['task']}", "recipe=none"])
    made: dict[str, Any] = {}
    for key, value in _missing(wanted, base):
        section, _, name = (f"{key}.name" if key in ("optimizer", "schedule") else key).partition(".")
        if name:
            made.setdefault(section, {})[name] = value
        elif key != "seed":
            made[key] = value
    return made


def _composed(found: list[str], configuration: Configuration) -> Settings | None:
    """Settings that the words give so far; None if they do not suit each other without those that are to come."""
    try:
        return configuration.settings(found)
    except ConfigError:
        return None


def _missing(wanted: dict[str, Any], base: Settings | None) -> list[tuple[str, Any]]:
    """The settings that differ; of those that only `base` has, the trainer's, which null switches off."""
    have = {} if base is None else by_key(base.as_dict())
    changed = [(key, value) for key, value in wanted.items() if key not in have or not _same(have[key], value)]
    gone = [(key, None) for key in have if key not in wanted and key.startswith(("trainer.", "stopping."))]
    return [(key, value) for key, value in changed + gone if key not in ("model", "task")]


def _same(a: Any, b: Any) -> bool:
    """Return True if two values are one setting: 1.0 is a whole epoch, 1 is one batch, and true is not 1."""
    return json.dumps(a) == json.dumps(b)
