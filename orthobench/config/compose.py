"""From the words on a command line to one composed configuration, with nothing executed on the way.

Hydra composes; this file finds conf/, spares users the `+`, and refuses what a configuration has no business doing:
running code through `_target_`, moving Hydra's own folders, reading the environment.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from orthobench.errors import ConfigError
from orthobench.schema import did_you_mean

GROUPS = ("model", "task", "optimizer", "schedule", "trainer", "logger", "recipe", "experiment")
HYDRA_ALLOWED = ("hydra/launcher", "hydra.launcher.", "hydra.sweeper.max_batch_size", "hydra.verbose")
LAUNCHERS = (
    "hydra._internal.core_plugins.basic_launcher.BasicLauncher",
    "hydra_plugins.hydra_joblib_launcher.joblib_launcher.JoblibLauncher",
    "hydra_plugins.hydra_submitit_launcher.submitit_launcher.LocalLauncher",
    "hydra_plugins.hydra_submitit_launcher.submitit_launcher.SlurmLauncher",
)
ENVIRONMENT = ("ORTHOBENCH_DATA", "ORTHOBENCH_RUNS", "ORTHOBENCH_RESULTS")


def conf_dir() -> Path:
    """The configuration tree: the checkout's conf/ when there is one, else the copy inside the package."""
    package = Path(__file__).resolve().parents[1]
    checkout = package.parent / "conf"
    return checkout if (checkout / "config.yaml").is_file() else package / "conf"


@dataclass(frozen=True)
class Composed:
    """A composed configuration.

    Attributes:
        values: plain, resolved values by key.
        choices: the file chosen for every group.
        typed: the keys that the command line set.
        new: those of them that no configuration file has.
        interpolated: whether a value refers to another one.
    """

    values: dict[str, Any]
    choices: dict[str, str]
    typed: frozenset[str]
    new: frozenset[str]
    interpolated: bool = False

    def unknown(self) -> bool:
        """Whether a typed key is in no configuration file, so that only a constructor can tell if it is one."""
        return bool(self.new)


@dataclass(frozen=True)
class Word:
    """One override: `key=value`, with the text that Hydra is to see."""

    key: str
    text: str
    group: bool
    sweep: bool

    @property
    def prefix(self) -> str:
        """What Hydra needs before the key."""
        return "" if self.group else "++"


def parse(overrides: list[str] | tuple[str, ...], folders: tuple[Path, ...] = ()) -> list[Word]:
    """Overrides as Hydra is to see them: a value gets `++`, so that nobody types `+`; `experiment=` gets its overrides.

    Raises:
        ConfigError: not Hydra's grammar, an unknown name in a group, or an override of Hydra's own settings.
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    from orthobench.config.table import expand

    words = []
    for text in expand(overrides, folders):
        try:
            override = OverridesParser.create().parse_override(text)
        except HydraException as error:
            reason = str(error).splitlines()[0]
            raise ConfigError(f"{text!r} is not an override of the form key=value: {reason}.") from error
        key, plain = override.key_or_group, text.lstrip("+~")
        if not key:
            raise ConfigError(f"{text!r} is not an override of the form key=value.")
        if override.is_delete():
            raise ConfigError(f"{text!r}: nothing can be deleted from the configuration; set {key} to another value.")
        if key.startswith("hydra"):
            _check_hydra_override(key, text)
            words.append(Word(key, text, True, override.is_sweep_override()))
        elif key in GROUPS:
            sweep = override.is_sweep_override()
            values = list(override.sweep_string_iterator()) if sweep else [override.value()]
            for value in values:
                _check_choice(key, value, folders)
            words.append(Word(key, plain, True, sweep))
        else:
            words.append(Word(key, "++" + plain, False, override.is_sweep_override()))
    return words


def options(group: str, folders: tuple[Path, ...] = ()) -> list[str]:
    """The names that a group offers, here and in the user's own folders."""
    found = set()
    for folder in (conf_dir(), *folders):
        root = folder / group
        found |= {path.relative_to(root).with_suffix("").as_posix() for path in root.rglob("*.yaml")}
    return sorted(found)


def compose(overrides: list[str] | tuple[str, ...], folders: tuple[Path, ...] = ()) -> Composed:
    """Compose one run.

    Args:
        overrides: `key=value` words, in Hydra's grammar.
        folders: further configuration folders (`--config-dir`).

    Raises:
        ConfigError: anything that a user can put right.
    """
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra
    from hydra.errors import HydraException
    from omegaconf import OmegaConf, open_dict
    from omegaconf.errors import OmegaConfBaseException

    words = parse(overrides, folders)
    swept = [word.key for word in words if word.sweep]
    if swept:
        raise ConfigError(f"{swept[0]}= has several values; add -m to run them all as a sweep.")
    for folder in folders:
        check_folder(folder)
    GlobalHydra.instance().clear()
    extra = (
        [f"hydra.searchpath=[{','.join(quoted(f'file://{Path(f).resolve()}') for f in folders)}]"] if folders else []
    )
    try:
        with initialize_config_dir(str(conf_dir()), version_base="1.3"):
            cfg = hydra_compose("config", [word.text for word in words] + extra, return_hydra_config=True)
            base = hydra_compose("config", [word.text for word in words if word.group] + extra)
        choices = {key: value for key, value in cfg.hydra.runtime.choices.items() if key in GROUPS and value}
        _check_hydra(OmegaConf.to_container(cfg.hydra, resolve=False))
        with open_dict(cfg):
            del cfg["hydra"]
        raw = OmegaConf.to_container(cfg, resolve=False)
        check_values(raw)
        values = OmegaConf.to_container(cfg, resolve=True)
    except (HydraException, OmegaConfBaseException) as error:
        cause = error.__cause__ or error
        raise ConfigError(f"the configuration cannot be composed: {' '.join(str(cause).split())}") from error
    assert isinstance(values, dict)
    plain = {str(key): value for key, value in values.items()}
    typed = frozenset(word.key for word in words if not word.group)
    new = frozenset(key for key in typed if OmegaConf.select(base, key) is None)
    refers = any(isinstance(value, str) and "${" in value and "${oc.env:" not in value for _, _, value in _walk(raw))
    return Composed(plain, choices, typed, new, refers)


def check_folder(folder: Path) -> None:
    """Refuse a folder of configurations that does more than add values.

    Raises:
        ConfigError: not a folder, not YAML, or a file with a name of ours, a `hydra:` block, `_target_` or an odd
            interpolation.
    """
    import yaml

    if not Path(folder).is_dir():
        raise ConfigError(f"--config-dir {folder} is not a folder.")
    for path in sorted(Path(folder).rglob("*.yaml")):
        if (conf_dir() / path.relative_to(folder)).is_file() and Path(folder).resolve() != conf_dir():
            raise ConfigError(f"{path} would not be read: orthobench has a file of this name; give it another.")
        text = path.read_text(encoding="utf-8", errors="replace")
        try:
            content = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise ConfigError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from error
        header = [line for line in text.splitlines() if line.startswith("#") and "@package" in line]
        if any("hydra" in line for line in header) or (isinstance(content, dict) and "hydra" in content):
            raise ConfigError(f"{path} sets Hydra's own configuration, which a model or task file may not do.")
        check_values(content, f"{path}: ")


def quoted(text: str) -> str:
    """A value in quotes, for Hydra's grammar."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _check_hydra_override(key: str, text: str) -> None:
    if not any(key == name or (name.endswith(".") and key.startswith(name)) for name in HYDRA_ALLOWED):
        raise ConfigError(f"{text!r} is refused: of Hydra's own settings only the launcher can be changed.")
    if "_target_" in text:
        raise ConfigError(f"{text!r} is refused: a configuration may not name code to run (_target_).")
    if "=submitit" in text and find_spec("submitit") is None:
        raise ConfigError(f"{text} needs a package that is not installed: pip install 'orthobench[slurm]'.")


def _check_choice(group: str, value: Any, folders: tuple[Path, ...]) -> None:
    known = options(group, folders)
    name = value.strip("'\"") if isinstance(value, str) else value
    if name not in known:
        shown = "null" if value is None else value
        hint = "; recipe=none switches it off" if group == "recipe" else ""
        raise ConfigError(f"{group}={shown} is not known: {did_you_mean(str(shown), known)}{hint}")


def _walk(node: Any, place: str = "") -> Iterator[tuple[str, str, Any]]:
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        here = f"{place}.{key}" if place else str(key)
        yield here, str(key), value
        yield from _walk(value, here)


def check_values(content: Any, source: str = "") -> None:
    """Refuse values that do more than be values: code to run, secrets, odd interpolations.

    Raises:
        ConfigError: there is one.
    """
    for place, key, value in _walk(content):
        if key == "_target_":
            raise ConfigError(f"{source}{place} is refused: a configuration may not name code to run (_target_).")
        if any(secret in key.lower() for secret in ("api_key", "apikey", "token", "secret", "password")):
            raise ConfigError(f"{source}{place} looks like a secret; secrets belong in the environment, never here.")
        if isinstance(value, str) and "${" in value:
            _check_interpolation(value, source + place)


def _check_interpolation(value: str, place: str) -> None:
    for part in value.split("${")[1:]:
        inside = part.split("}")[0]
        resolver, colon, argument = inside.partition(":")
        if colon and not (resolver == "oc.env" and argument.split(",")[0] in ENVIRONMENT):
            raise ConfigError(f"{place}={value} is refused: only plain references such as ${{seed}} are allowed.")


def _check_hydra(hydra: Any) -> None:
    launcher = hydra["launcher"].get("_target_")
    if hydra.get("callbacks") or hydra["job"].get("env_set") or launcher not in LAUNCHERS:
        raise ConfigError("the configuration sets Hydra's callbacks, environment or launcher class, which is refused.")
