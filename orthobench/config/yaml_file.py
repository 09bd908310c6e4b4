"""Reading YAML files, which may be a stranger's: a file that is no plain, moderate text is refused in one sentence."""

import re
import stat
from pathlib import Path
from typing import Any, ClassVar

import yaml

from orthobench.errors import ConfigError

LARGEST = 2_000_000  # bytes; the largest of ours has 60,000
DEEPEST = 30
MOST = 50_000  # keys, values and lists; more would take seconds
LONGEST_WORD = 20_000  # characters of one key or value
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
FLOAT = "tag:yaml.org,2002:float"


class AsOmegaConf(LOADER):
    """YAML as OmegaConf reads it, which Hydra composes with: `1e-3` is a number, and a date is a word."""

    yaml_implicit_resolvers: ClassVar = {
        first: [(tag, pattern) for tag, pattern in known if tag not in (FLOAT, "tag:yaml.org,2002:timestamp")]
        for first, known in LOADER.yaml_implicit_resolvers.items()
    }


AsOmegaConf.add_implicit_resolver(
    FLOAT,
    re.compile(
        r"""^(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|[-+]?[0-9][0-9_]*(?:[eE][-+]?[0-9]+)
        |\.[0-9_]+(?:[eE][-+][0-9]+)?|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)
        |\.(?:nan|NaN|NAN))$""",
        re.VERBOSE,
    ),
    list("-+0123456789."),
)


def read_yaml(path: Path, loader: Any = LOADER) -> Any:
    """The content of a YAML file, made of plain values alone.

    Args:
        path: the file.
        loader: PyYAML's class that makes values, a safe one.

    Raises:
        ConfigError: it is not a file, too large, not UTF-8, not YAML, too deep, has a key twice, or an alias in what
            another alias repeats, by which a few lines become gigabytes or have no end.
        OSError: it cannot be read.
    """
    state = path.stat()
    if not stat.S_ISREG(state.st_mode):
        raise ConfigError(f"{path} is not a file: put a YAML file in its place, or remove it.")
    if state.st_size > LARGEST:
        raise ConfigError(
            f"{path} has {state.st_size:,} bytes; a YAML file may have {LARGEST:,}"
            "; split it, or leave out what is not needed."
        )
    try:
        text = path.read_bytes().decode()
        problem = _problem(text)
        content = None if problem else loader(text).get_single_data()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8: byte {error.start}; save it in UTF-8.") from error
    except (yaml.YAMLError, ValueError, TypeError, LookupError, AttributeError) as error:  # PyYAML's of a wrong value
        raise ConfigError(
            f"{path} is not valid YAML; correct the line that is named here: {' '.join(str(error).split())}"
        ) from error
    if problem:
        raise ConfigError(f"{path}: {problem}; correct that line.")
    return content


def _problem(text: str) -> str | None:
    """Problem of YAML whose grammar is right, reported before anything is made of it; None if there is none."""
    nodes: list[tuple[set[str] | None, bool]] = []  # of each open collection: a mapping's keys, whether it is anchored
    at_key: list[bool] = []
    for number, event in enumerate(yaml.parse(text, LOADER)):
        line = f"line {event.start_mark.line + 1}"
        if number > MOST:
            return f"{line} is beyond {MOST:,} keys, values and lists, which is the most that a file may have"
        if isinstance(event, yaml.CollectionEndEvent):
            nodes.pop()
            at_key.pop()
            continue
        if not isinstance(event, yaml.NodeEvent):
            continue
        if isinstance(event, yaml.AliasEvent) and any(anchored for _, anchored in nodes):
            return f"{line} has an alias inside an anchor, which is refused"
        keys = nodes[-1][0] if nodes else None
        if isinstance(event, yaml.ScalarEvent):
            if len(event.value) > LONGEST_WORD:
                return f"{line} has a word of {len(event.value):,} characters; {LONGEST_WORD:,} are allowed"
            if keys is not None and at_key[-1]:
                if event.value in keys:
                    return f"{line} has the key {event.value} a second time"
                keys.add(event.value)
        if at_key:
            at_key[-1] = not at_key[-1]
        if isinstance(event, yaml.CollectionStartEvent):
            if len(nodes) == DEEPEST:
                return f"{line} is nested more than {DEEPEST} levels deep"
            nodes.append((set() if isinstance(event, yaml.MappingStartEvent) else None, event.anchor is not None))
            at_key.append(True)
    return None
