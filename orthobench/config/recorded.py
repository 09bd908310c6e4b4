"""The settings of a run from its config.yaml: of one that is to be begun, or has been, perhaps with another task.

config.yaml holds all settings by section, and under `start` what else was on the command line: `cap`, see `Settings`,
and `files`, the digests of YAML files from folders of `--config-dir`. No identity follows from these.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from orthobench.common import paths
from orthobench.common.schema import OptionalPositive, coerce
from orthobench.config.check import check
from orthobench.config.compose import Composed, parse
from orthobench.config.files import Files
from orthobench.config.policy import check_values
from orthobench.config.settings import SECTIONS, Settings, identity_of
from orthobench.config.words import expanded, parsed
from orthobench.errors import ConfigError

NAMED = ("model", "task")
KEYED = ("model", "task", "optimizer", "schedule", "trainer", "stopping")
TOP = {"model.name": "model", "task.name": "task", "optimizer.name": "optimizer", "schedule.name": "schedule"}
TOP |= {"task.T": "T", "task.variant": "variant", "model.variant": "variant"}
START, DATA, FILES = "start", "data", "files"  # what begins a run beside its settings; in it digests, by paths
PLACES = {"data_root": "data", "runs_root": "runs", "results_root": "results"}  # of whoever reads it, not ours
UNSAID = {
    "checkpoint": None,
    "ensemble": False,
    "force": False,
    "fork": True,
    "timeout": None,
    "cell": None,
    "init_from": None,
}


def content_of(settings: Settings) -> dict[str, Any]:
    """Content of a run's config.yaml, by which any process can begin it."""
    files = dict(settings.foreign)
    start = {**({"cap": settings.cap} if settings.cap else {}), **({FILES: files} if files else {})}
    return settings.as_kept() | ({START: start} if start else {})


def settings_of(content: Any, runs_root: str, data_root: str | None = None) -> Settings:
    """The checked settings that `content_of` has written, for a process that begins the run or goes on with it.

    Args:
        content: what config.yaml holds.
        runs_root: the folder of runs, which may have another path here.
        data_root: where real data are here; where they were for the process that wrote it when None.

    Raises:
        ConfigError: it is not the configuration of a run, or the values do not suit this version or each other.
    """
    values, choices = _values(content)
    start = values.pop(START, {})
    files = start.get(FILES, {}) if isinstance(start, dict) else None
    if not isinstance(files, dict) or not all(isinstance(text, str) for one in files.items() for text in one):
        raise ConfigError(f"config.yaml is not the configuration of a run: {START} is {start!r}; make the run again.")
    asked = {"T": values.get("T")}
    values = UNSAID | values | {"T": values["task"].pop("T", None), "params": values.get("params")}
    values |= {"runs_root": runs_root, "data_root": data_root or values.get("data_root", "data")}
    variants = _variants(values)
    composed = Composed(values, choices, frozenset(), frozenset(), foreign=tuple(files.items()), variants=variants)
    found = check(composed)
    cap = coerce(start.get("cap"), OptionalPositive, f"{START}.cap")
    return replace(found, run=found.run | asked, cap=cap)


def settings(
    content: Any, data_root: str | None = None, T: int | None = None, where: dict[str, str] | None = None, **task: Any
) -> Settings:
    """Checked settings from what config.yaml holds.

    Args:
        content: what config.yaml holds.
        data_root: where real data are now; where they were when None.
        T: another length; the recorded one when None.
        where: the whole paths of the files of the user's own, by the settings that name them; as recorded when None.
        **task: other settings of the task, in place of those recorded.

    Raises:
        ConfigError: it is not the configuration of a run, or the values do not suit this version or each other.
    """
    values, choices = _values(content)
    values.pop(START, None)
    recorded_T = values["task"].pop("T", None)
    values |= {
        "T": recorded_T if T is None else T,
        "params": None,  # the hidden size that it made is recorded
        "data_root": data_root or values.get("data_root", "data"),
        "task": values["task"] | task,
    }
    places = {**(where or {}), **{key: value for key, value in task.items() if key in (where or {})}}
    variants = _variants(values)
    return check(Composed(values, choices, frozenset(), frozenset(), recorded=places, variants=variants))


def _values(content: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """A copy of what config.yaml holds, and the names of the model and the task in it.

    Raises:
        ConfigError: it is not the configuration of a run.
    """
    sections = {"stopping": {}, "data": {}, **content} if isinstance(content, dict) else {}  # of earlier versions
    missing = [name for name in SECTIONS if not isinstance(sections.get(name), dict)]
    if missing or any("name" not in sections[name] for name in NAMED):
        raise ConfigError(
            "config.yaml is not the configuration of a run: "
            f"{', '.join(missing) or 'a name'} is missing; make the run again."
        )
    start = content.get(START)
    if isinstance(start, dict):  # a path may have any word in it
        start = {key: value for key, value in start.items() if key not in (DATA, FILES)}
    check_values(content | {START: start})
    stopping = sections["stopping"]
    ends = {stopping.get("patience"), stopping.get("threshold")}
    if stopping.get("metric") is None and ends != {None}:  # that of the data
        raise ConfigError(
            "config.yaml is not the configuration of a run: stopping.metric is missing; make the run again."
        )
    values: dict[str, Any] = {"variant": None}
    values |= {key: dict(value) if isinstance(value, dict) else value for key, value in sections.items()}
    return values, {name: values[name].pop("name") for name in NAMED}


def _variants(values: dict[str, Any]) -> dict[str, str]:
    """The variants of the model and the task, which are taken out of their settings.

    Raises:
        ConfigError: one of them is none.
    """
    found = {name: values[name].pop("variant") for name in NAMED if "variant" in values[name]}
    return {name: coerce(value, Literal["paper", "code"], f"{name}.variant") for name, value in found.items()}


def by_key(values: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that change the numbers, by their keys on the command line.

    Args:
        values: all settings of a run, as config.yaml and record.json hold them.
    """
    identity, found = identity_of(values), dict[str, Any]()
    for section in (name for name in KEYED if name in identity):
        given = {key: values[section][key] for key in identity[section]}
        found |= {TOP.get(f"{section}.{key}", f"{section}.{key}"): value for key, value in given.items()}
    return found | {key: identity[key] for key in ("seed", "init_from") if key in identity}


def named_files(content: Any) -> list[Path]:
    """The files of somebody's own that `task.path` in a config.yaml names, the second one of a pair among them."""
    task = content.get("task") if isinstance(content, dict) else None
    named = task.get("path") if isinstance(task, dict) else None
    if not isinstance(named, str) or not named or "\0" in named:
        return []
    path = Path(named)
    twin = paths.twin_of(path)
    return [path] if twin is None else [path, twin]


def task_overrides(words: list[str]) -> tuple[dict[str, Any], list[int] | None]:
    """Read `task.KEY=VALUE` and `T=A,B`: the task's settings by key, and the lengths; None without `T=`.

    Raises:
        ConfigError: not Hydra's grammar, or a word that would change more than the data.
    """
    task: dict[str, Any] = {}
    lengths: list[int] | None = None
    for word in parse(words, Files()):
        override = parsed(word.text)
        if override.is_sweep_override():
            expanded(override, word.text)  # which refuses too many
        value = list(override.sweep_iterator()) if override.is_sweep_override() else override.value()
        section, _, key = word.key.partition(".")
        if word.key == "T":
            lengths = list(dict.fromkeys(_length(one) for one in (value if isinstance(value, list) else [value])))
        elif section == "task" and key and not override.is_sweep_override():
            task[key] = _plain(value)
        else:
            use = "use T=400,800 or task.KEY=VALUE for what they are tested on"
            raise ConfigError(f"{word.text.lstrip('+')} does not apply to a run that is finished: {use}.")
    check_values(task)
    return task, lengths


def _length(value: Any) -> int:
    whole = type(value) is int or (type(value) is float and value.is_integer())  # 1e3 is a number with a point in YAML
    if not whole or value < 1:
        raise ConfigError(f"T={value} is not a length: whole numbers >= 1 are, such as T=400,800.")
    return int(value)


def _plain(value: Any) -> Any:
    """A value without Hydra's class for quoted text."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return str(value) if not isinstance(value, str | int | float | bool | None) else value
