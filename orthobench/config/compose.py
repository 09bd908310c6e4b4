"""From the words of a command line to one composed configuration, without executing anything.

Hydra composes; this file finds conf/, adds the `+` that Hydra needs, and refuses what a configuration must not do: run
code through `_target_`, move Hydra's own folders, or read the environment.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

from orthobench.common import paths
from orthobench.common.registry import with_hint
from orthobench.common.schema import did_you_mean
from orthobench.config import places
from orthobench.config.about import digest, strip
from orthobench.config.files import GROUPS, Files, conf_dir
from orthobench.config.places import place_values
from orthobench.config.policy import (
    COMMAND_LINE_ALONE,
    check_foreign,
    check_hydra,
    check_hydra_override,
    check_references,
    check_values,
    walk,
)
from orthobench.config.words import expanded, parsed, quoted
from orthobench.errors import ConfigError

OF_A_FILE = (OSError, ValueError, TypeError, AttributeError, AssertionError, KeyError)  # Hydra's, of one without keys
_ONE_AT_A_TIME = Lock()  # Hydra has one global state
_FOR_HYDRAS_MAIN = tuple(  # parts of its own node that its main function alone reads: a quarter of the time to compose
    f"~hydra/{part}" for part in ("output", "sweeper", "help", "hydra_help", "hydra_logging", "job_logging", "env")
)


VARIABLE = "orthobench.env"


@dataclass(frozen=True)
class Composed:
    """A composed configuration.

    Attributes:
        values: plain, resolved values by key.
        choices: the file chosen for every group.
        typed: the keys that the command line set.
        new: the typed keys that no configuration file has.
        interpolated: whether any value refers to another one.
        recorded: the whole paths of files, by the settings of the task that name them, of a run that has been; its
            settings keep the words that they had. Null for a run that is asked for.
        foreign: the digest of each chosen file that is in a folder of `--config-dir`, by its name: `model/mgu.yaml`.
        variants: the variant of `model` and `task` where `variant` is null, of a run whose settings are kept.
    """

    values: dict[str, Any]
    choices: dict[str, str]
    typed: frozenset[str]
    new: frozenset[str]
    interpolated: bool = False
    recorded: dict[str, str] | None = None
    foreign: tuple[tuple[str, str], ...] = ()
    variants: dict[str, str] = field(default_factory=dict)

    def unknown(self) -> bool:
        """Return True if a typed key is in no configuration file, so that only a constructor can tell if it is one."""
        return bool(self.new)


@dataclass(frozen=True)
class Word:
    """Override, `key=value`, with the text that is passed to Hydra."""

    key: str
    text: str
    group: bool
    sweep: bool

    @property
    def prefix(self) -> str:
        """The sign that Hydra's grammar needs before the key, empty or `++`."""
        return "" if self.group else "++"


def parse(overrides: Iterable[str], files: Files) -> list[Word]:
    """Overrides as they are passed to Hydra: a value gets `++`.

    Raises:
        ConfigError: a word is not in Hydra's grammar, names nothing in its group, or overrides Hydra's own settings.
    """
    from hydra.core.override_parser.types import Glob

    words = []
    for text in places.given(overrides):
        override = parsed(text)
        key, plain = override.key_or_group, text.lstrip("+~")
        if not key:
            raise ConfigError(f"{text!r} is not an override: write KEY=VALUE.")
        if override.is_delete():
            raise ConfigError(f"{text!r}: nothing can be deleted from the configuration; set {key} to another value.")
        if key.startswith("hydra"):
            check_hydra_override(key, text)
            words.append(Word(key, text, True, override.is_sweep_override()))
        elif key in GROUPS:
            sweep = override.is_sweep_override()
            if isinstance(override.value(), Glob):
                raise ConfigError(f"{text} is not supported: name every {key}, as `orthobench list` shows them.")
            values = expanded(override, text) if sweep else [override.value()]
            for value in values:
                _check_choice(key, value, files)
            words.append(Word(key, plain, True, sweep))
        else:
            words.append(Word(key, "++" + plain, False, override.is_sweep_override()))
    return words


def compose(overrides: Iterable[str], files: Files) -> Composed:
    """Compose one run from `key=value` words, in Hydra's grammar.

    Raises:
        ConfigError: the words or the files are wrong in any way that a user can correct.
    """
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException
    from yaml import YAMLError

    files.check()
    words, folders = parse(overrides, files), files.folders
    swept = [word.key for word in words if word.sweep]
    if swept:
        raise ConfigError(f"{swept[0]}= has several values; add -m to run them all as a sweep.")
    searched = ",".join(quoted(f"file://{Path(folder).resolve()}") for folder in folders)
    extra = (
        (f"hydra.searchpath=[{searched}]",) if folders else _FOR_HYDRAS_MAIN
    )  # all that folders may set is looked at
    state = files.state()
    try:
        found = _by_hydra(conf_dir(), (*(word.text for word in words), *extra), state)
        base = _by_hydra(conf_dir(), (*(word.text for word in words if word.group), *extra), state)
        check_hydra(found["hydra"])
        if folders:
            apart = ("hydra", *COMMAND_LINE_ALONE)
            alone = tuple(word.text for word in words if word.key.split(".")[0].split("/")[0] in apart)
            check_foreign(found, _by_hydra(conf_dir(), alone, state))
        raw = {key: value for key, value in found.items() if key != "hydra"}
        check_values(raw)
        check_references(raw)
        OmegaConf.register_new_resolver(VARIABLE, _variable, replace=True)
        values: Any = OmegaConf.to_container(OmegaConf.create(_by_variable(raw)), resolve=True)
    except (HydraException, OmegaConfBaseException, YAMLError, *OF_A_FILE) as error:  # such as a tab that YAML allows
        cause = error.__cause__ or error
        raise ConfigError(
            "the configuration cannot be composed; correct the setting or file that is named here: "
            f"{' '.join(str(cause).split())}"
        ) from error
    choices = {key: value for key, value in found["hydra"]["runtime"]["choices"].items() if key in GROUPS and value}
    typed = frozenset(word.key for word in words if not word.group)
    strip(values, typed)
    if folders:
        place_values(values, typed, folders)
    new = frozenset(key for key in typed if get(base, key) is None)
    refers = any(_refers(value) for _, _, value in walk(raw))
    return Composed(values, choices, typed, new, refers, foreign=_foreign(choices, files))


@lru_cache(maxsize=512)
def _by_hydra(conf: Path, words: tuple[str, ...], state: Any) -> dict[str, Any]:
    """Compose the files in `conf` and words with Hydra, with its own node `hydra`; nothing is resolved.

    Hydra needs a tenth of a second, so what it made is kept, for the same words and the same `state` of the files.
    """
    from hydra import compose, initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra
    from omegaconf import OmegaConf

    with _ONE_AT_A_TIME:
        GlobalHydra.instance().clear()
        with initialize_config_dir(str(conf), version_base="1.3"):
            cfg = compose("config", list(words), return_hydra_config=True)
    made: Any = OmegaConf.to_container(cfg, resolve=False)
    return made


def _by_variable(node: Any) -> Any:
    """The values with our own resolver for environment variables, which expands the paths in them."""
    if isinstance(node, dict):
        return {key: _by_variable(value) for key, value in node.items()}
    if isinstance(node, list):
        return [_by_variable(value) for value in node]
    return node.replace("${oc.env:", f"${{{VARIABLE}:") if isinstance(node, str) else node


def _variable(name: str, default: str | None = None) -> str | None:
    return paths.variable(name) or default


def _refers(value: Any) -> bool:
    """Return True if a value refers to another one, and not to the environment alone."""
    return isinstance(value, str) and any(not part.startswith("oc.env:") for part in value.split("${")[1:])


def _foreign(choices: dict[str, str], files: Files) -> tuple[tuple[str, str], ...]:
    names = [f"{group}/{name}.yaml" for group, name in choices.items()]
    places = ((name, folder / name) for name in names for folder in files.folders)
    return tuple((name, digest(path)) for name, path in places if path.is_file())


def get(values: Any, key: str) -> Any:
    """The value at a dotted key of nested dictionaries; None where there is none."""
    for part in key.split("."):
        values = values.get(part) if isinstance(values, dict) else None
    return values


def _check_choice(group: str, value: Any, files: Files) -> None:
    known = files.options(group)
    name = value.strip("'\"") if isinstance(value, str) else value
    if name not in known:
        shown = "null" if value is None else value
        told = did_you_mean(str(shown), known) + ("; recipe=none switches it off" if group == "recipe" else "")
        if group in ("model", "task") and not files.folders:
            hint = f"one of your own is found with --config-dir FOLDER, where FOLDER holds {group}/NAME.yaml"
            told = with_hint(told, hint)
        misnamed = next(
            (one for one in (folder / group / f"{name}.yml" for folder in files.folders) if one.is_file()), None
        )
        if misnamed:
            told = f"{misnamed} is there, and must end in .yaml"
        raise ConfigError(f"{group}={shown} is not known: {told}")
