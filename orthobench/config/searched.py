"""The ranges of the settings that a model's file searches for fair tables, four at the most.

search:
  lr: log(3e-4,1e-1)                  # the rate of training
  ratio: log(0.03,1)                  # the rate of constrained matrices, as a share of `lr`
  T_max: int(10,1000,log)             # any setting of the model

Each is in the grammar of `ranges.py` and says as a comment where it is from. It is no setting: no constructor and no
run id sees it.
"""

from functools import lru_cache
from pathlib import Path
from typing import Any

from orthobench.config.ranges import SearchRange, parse
from orthobench.config.yaml_file import read_yaml
from orthobench.errors import ConfigError

MOST = 4  # settings that a cell may search
LR, RATIO = "lr", "ratio"
UNSAID = {LR: "log(3e-4,1e-1)", RATIO: "log(0.03,1)"}  # of a model whose file says nothing


def ranges(given: Any, place: str) -> dict[str, SearchRange]:
    """The range of every setting that a model's file searches.

    Raises:
        ConfigError: more than four settings, or one has no range.
    """
    if not isinstance(given, dict) or len(given) > MOST:
        raise ConfigError(f"{place}: a mapping of at most {MOST} settings is needed, such as lr: log(3e-4,1e-1).")
    found = {}
    for name, text in given.items():
        if not isinstance(text, str):
            raise ConfigError(f"{place}.{name}={text!r} is no range; write a list of choices as '{{a,b}}'.")
        try:
            found[name] = parse(f"{key_of(name)}={text}")
        except ConfigError as error:
            raise ConfigError(f"{place}: {error}") from error
        if name in (LR, RATIO) and found[name].choices:
            raise ConfigError(f"{place}.{name}={text}: a range of numbers is needed, such as log(3e-4,1e-1).")
    return found


def key_of(name: str) -> str:
    """The key on the command line of a setting that is searched."""
    return {LR: "optimizer.lr", RATIO: "optimizer.lr_recurrent"}.get(name, f"model.{name}")


@lru_cache(maxsize=512)
def searched(path: Path, version: tuple[int, ...]) -> dict[str, str]:
    """The ranges in a model's file by setting; those of any model where it has none.

    Raises:
        ConfigError: its `search:` is wrong.
    """
    given = (read_yaml(path) or {}).get("search", UNSAID)
    ranges(given, f"{path}: search")
    return given
