"""The settings of a run that has been, from its config.yaml, and the same with another task."""

from pathlib import Path
from typing import Any

from orthobench.config.check import check
from orthobench.config.compose import Composed, parse
from orthobench.config.files import Files
from orthobench.config.policy import check_values
from orthobench.config.settings import SECTIONS, Settings
from orthobench.config.words import expanded, parsed
from orthobench.errors import ConfigError

NAMED = ("model", "task")


def settings(
    content: Any, data_root: str | None = None, T: int | None = None, where: dict[str, str] | None = None, **task: Any
) -> Settings:
    """Checked settings from what config.yaml holds.

    Args:
        content: what config.yaml holds.
        data_root: where real data are now; where they were when null.
        T: another length; the recorded one when null.
        where: the whole paths of the files of the user's own, by the settings that name them; as recorded when null.
        **task: other settings of the task, in place of those recorded.

    Raises:
        ConfigError: it is not the configuration of a run, or the values do not suit this version or each other.
    """
    sections = {"stopping": {}, "data": {}, **content} if isinstance(content, dict) else {}  # of earlier versions
    missing = [name for name in SECTIONS if not isinstance(sections.get(name), dict)]
    if missing or any("name" not in sections[name] for name in NAMED):
        raise ConfigError(
            f"config.yaml is not the configuration of a run: {', '.join(missing) or 'a name'} is missing."
        )
    check_values(content)
    stopping = sections["stopping"]
    if stopping.get("metric") is None and {stopping.get("patience"), stopping.get("threshold")} != {None}:
        raise ConfigError("config.yaml is not the configuration of a run: stopping.metric is missing.")  # of the data
    values = {key: dict(value) if isinstance(value, dict) else value for key, value in sections.items()}
    choices = {name: values[name].pop("name") for name in NAMED}
    recorded_T = values["task"].pop("T", None)
    variants = [values[name].pop("variant", None) for name in NAMED]
    values |= {
        "T": recorded_T if T is None else T,
        "variant": values.get("variant") or variants[0] or variants[1],
        "params": None,  # the hidden size that it made is recorded
        "data_root": data_root or values.get("data_root", "data"),
        "task": values["task"] | task,
    }
    files = {key: value for key, value in task.items() if key in (where or {})}
    return check(Composed(values, choices, frozenset(), frozenset(), recorded={**(where or {}), **files}))


def named_files(content: Any) -> list[Path]:
    """The files of somebody's own that `task.path` in a config.yaml names, the second one of a pair among them."""
    task = content.get("task") if isinstance(content, dict) else None
    named = task.get("path") if isinstance(task, dict) else None
    if not isinstance(named, str) or not named or "\0" in named:
        return []
    path = Path(named)
    return (
        list(dict.fromkeys([path, path.with_name(path.name.replace("_TRAIN.ts", "_TEST.ts"))])) if path.name else [path]
    )


def task_overrides(words: list[str]) -> tuple[dict[str, Any], list[int] | None]:
    """What `task.KEY=VALUE` and `T=A,B` set: the task's settings by key, and the lengths; null without `T=`.

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
            lengths = [_length(one) for one in (value if isinstance(value, list) else [value])]
        elif section == "task" and key and not override.is_sweep_override():
            task[key] = _plain(value)
        else:
            use = "T=400,800 and task.KEY=VALUE say what they are tested on"
            raise ConfigError(f"{word.text.lstrip('+')} does not apply to a run that is finished: {use}.")
    check_values(task)
    return task, lengths


def _length(value: Any) -> int:
    if type(value) is not int or value < 1:
        raise ConfigError(f"T={value} is not a length: whole numbers >= 1 are, such as T=400,800.")
    return value


def _plain(value: Any) -> Any:
    """A value without Hydra's class for quoted text."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return str(value) if not isinstance(value, str | int | float | bool | None) else value
