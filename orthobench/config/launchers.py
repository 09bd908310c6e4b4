"""The settings of the launcher that `hydra/launcher=NAME` and `hydra.launcher.KEY=VALUE` choose."""

from typing import Any

from orthobench.common.schema import refuse_unknown
from orthobench.config.compose import Word, compose, parse
from orthobench.config.files import Files, conf_dir
from orthobench.config.policy import LAUNCHERS
from orthobench.config.words import key, value
from orthobench.config.yaml_file import read_yaml

SETTING = "hydra.launcher."
LOCAL = {"local": (), "basic": (), "joblib": ("hydra.launcher.n_jobs=-1",)}  # words for this machine, and what they set


def split(words: list[str]) -> tuple[list[str], list[str]]:
    """The words that are about the launcher, and the others."""
    about = [word for word in words if key(word).startswith(("hydra/launcher", SETTING))]
    return about, [word for word in words if word not in about]


def launcher_settings(words: list[str]) -> dict[str, Any]:
    """The settings of a launcher, with its `name`; that of this machine where none is named.

    Raises:
        ConfigError: there is no such launcher or setting, or its package is not installed.
    """
    named = next((value(word) for word in reversed(words) if key(word) == "hydra/launcher"), "local")
    if named in LOCAL:
        about = [word for word in words if key(word) != "hydra/launcher"]
        words = ["hydra/launcher=local", *(word for word in LOCAL[named] if key(word) not in map(key, about)), *about]
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from omegaconf import OmegaConf

    parsed = parse(words, Files())
    _refuse_unknown_keys(parsed, "local" if named in LOCAL else named)
    compose(words, Files())  # refuses what is wrong
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        cfg = hydra_compose("config", [word.text for word in parsed], return_hydra_config=True)
    node: Any = OmegaConf.to_container(cfg.hydra.launcher, resolve=True)
    return node


def _refuse_unknown_keys(words: list[Word], name: str) -> None:
    """Refuse a setting that the launcher of this name does not have."""
    known = read_yaml(conf_dir() / "hydra" / "launcher" / f"{name}.yaml").keys() - {"name"}
    keys = [word.key.removeprefix(SETTING).split(".")[0] for word in words if word.key.startswith(SETTING)]
    refuse_unknown(keys, known, SETTING, f" is no setting of hydra/launcher={name}")


def check_name(name: str) -> None:
    """Refuse an unknown value of `--launcher`.

    Raises:
        ConfigError: it is unknown.
    """
    refuse_unknown([name], LAUNCHERS, "--launcher ", " is not known")
