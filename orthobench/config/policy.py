"""What a configuration must not do: run code, read the environment, hold secrets, or set Hydra's own settings."""

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

from orthobench.errors import ConfigError

HYDRA_ALLOWED = ("hydra/launcher", "hydra.launcher.", "hydra.sweeper.max_batch_size", "hydra.verbose")

LAUNCHERS = (
    "hydra._internal.core_plugins.basic_launcher.BasicLauncher",
    "hydra_plugins.hydra_joblib_launcher.joblib_launcher.JoblibLauncher",
    "hydra_plugins.hydra_submitit_launcher.submitit_launcher.LocalLauncher",
    "hydra_plugins.hydra_submitit_launcher.submitit_launcher.SlurmLauncher",
)
LAUNCHER_PACKAGES = (
    ("submitit", "hydra_plugins.hydra_submitit_launcher", "slurm"),
    ("joblib", "hydra_plugins.hydra_joblib_launcher", "joblib"),
)
ENVIRONMENT = ("ORTHOBENCH_DATA", "ORTHOBENCH_RUNS", "ORTHOBENCH_RESULTS")


def check_hydra_override(key: str, text: str) -> None:
    """Refuse an override of Hydra's own settings other than the launcher's.

    Raises:
        ConfigError: the override is of this kind.
    """
    if not any(key == name or (name.endswith(".") and key.startswith(name)) for name in HYDRA_ALLOWED):
        raise ConfigError(f"{text!r} is refused: only the launcher among Hydra's own settings can be changed.")
    if "_target_" in text:
        raise ConfigError(f"{text!r} is refused: a configuration may not name code to run (_target_).")
    for launcher, package, extra in LAUNCHER_PACKAGES:
        if f"={launcher}" in text and find_spec(package) is None:
            raise ConfigError(f"{text} needs a package that is not installed: pip install 'orthobench[{extra}]'.")


def walk(node: Any, place: str = "") -> Iterator[tuple[str, str, Any]]:
    """(dotted path, key, value) of every entry of nested dictionaries and lists."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        here = f"{place}.{key}" if place else str(key)
        yield here, str(key), value
        yield from walk(value, here)


def check_values(content: Any, source: str = "") -> None:
    """Refuse code to run, secrets, and interpolations other than plain references.

    Raises:
        ConfigError: a value is one of these.
    """
    for place, key, value in walk(content):
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


def check_hydra(hydra: Any) -> None:
    """Refuse a composed `hydra` node that sets callbacks, an environment or an unknown launcher class.

    Raises:
        ConfigError: it sets one of these.
    """
    launcher = hydra["launcher"].get("_target_")
    if hydra.get("callbacks") or hydra["job"].get("env_set") or launcher not in LAUNCHERS:
        raise ConfigError("the configuration sets Hydra's callbacks, environment or launcher class, which is refused.")
