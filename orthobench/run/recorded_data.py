"""Place of the data of a finished run now: where they were, unless they are named again."""

import os
from pathlib import Path
from typing import Any

from orthobench.common.paths import absolute, variable
from orthobench.common.registry import find
from orthobench.errors import ConfigError, DataError
from orthobench.recording.sources import data_of, digest_of_data

Where = dict[str, str]


def root_of(content: Any, record: dict[str, Any], given: str | None) -> str:
    """The folder of data sets: the given one; else $ORTHOBENCH_DATA or the recorded one, whichever has the run's data.

    Args:
        content: what config.yaml holds.
        record: what record.json holds.
        given: `data_root=`.
    """
    recorded = content.get("data_root") if isinstance(content, dict) else None
    was = recorded if isinstance(recorded, str) else "data"
    choices = [given] if given else [root for root in (variable("ORTHOBENCH_DATA"), was) if root]
    names = [name.partition("/**")[0] for name in data_of(record.get("sources")) if not os.path.isabs(name)]  # noqa: PTH117
    found = [root for root in choices if all(_is_there(root, name) for name in names)]
    return (found or choices)[0]


def own_files(content: Any, record: dict[str, Any], root: str) -> Where:
    """The whole paths of the files that a run's settings name, by setting.

    Earlier versions recorded a path as it was typed; where it led is told by the files that the run has read.
    """
    task = content.get("task") if isinstance(content, dict) else None
    if not isinstance(task, dict) or not isinstance(task.get("name"), str):
        return {}
    known = [absolute(str(Path(root) / name)) for name in data_of(record.get("sources")) if "**" not in name]
    found = {}
    for key in find("task", task["name"], "task").own_files:
        text = task.get(key)
        if isinstance(text, str) and text and "\0" not in text:
            same = (name for name in known if Path(name).name == Path(text).name)
            found[key] = text if Path(text).is_absolute() else next(same, absolute(text))
    return found


def refuse_missing(run_id: str, sources: Any, root: str, was: str) -> None:
    """Refuse what needs a run's data where they are no longer; the sentence names where they were and where else.

    Args:
        run_id: the run's name.
        sources: `sources` of its record.
        root: the folder of data sets that is looked into.
        was: the recorded one.

    Raises:
        DataError: a file is missing.
    """
    for name in data_of(sources):
        plain = name.partition("/**")[0]
        if _is_there(root, plain):
            continue
        begun = f"the data of {run_id} are not where they were,"
        if Path(name).is_absolute():
            here = Path.cwd() / Path(name).name
            known = f", and {here} is " + ("another file" if here.is_file() else "not there either")
            raise DataError(
                f"{begun} {name}{'' if str(here) == name else known}; put them back, or name their place now: `eval` "
                "takes task.path=FILE."
            )
        places = dict.fromkeys(absolute(str(Path(one) / plain)) for one in (was, root))
        raise DataError(f"{begun} {' nor in '.join(places)}; set data_root= to the folder that they are in now.")


def _is_there(root: str, name: str) -> bool:
    """Return True if there is such a file or folder; a record may hold what is no name at all."""
    return os.path.exists(Path(root) / name)  # noqa: PTH110  (that of a Path raises)


def refuse_unknown(run_id: str, sources: Any, root: str, where: Where) -> None:
    """Refuse to read a file that a run's settings name and its record does not: whoever wrote them may name any file.

    Raises:
        ConfigError: there is such a file.
    """
    known = {absolute(str(Path(root) / name)) for name in data_of(sources)}
    for key, path in where.items():
        if path not in known:
            raise ConfigError(
                f"the record of {run_id} has no digest of {path}, which is not read therefore; if it is yours, name "
                f"it: `eval` takes task.{key}=FILE."
            )


def is_the_runs(files: list[Path], sources: Any) -> bool:
    """Return True if files have the content of those that a run has read."""
    known = sorted(data_of(sources).values())
    return bool(known) and sorted(filter(None, map(digest_of_data, files))) == known
